"""Slots that threads read by ordinary loads and the copy engine fills again: whether a proxy fence orders the two."""

from __future__ import annotations

from collections.abc import Collection

from argus.core.ir import Arrive, Buffer, Copy, Fence, For, If, Kernel, One, Roles, Stmt, bodies, walk


def unfenced(kernel: Kernel) -> bool:
    """Whether an ordinary read of what the copy engine refills may be given back without a fence of its readers."""
    copies = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Copy)]
    refilled = {s.target.buffer for s in copies if s.atom.proxy == "async" and s.target.buffer.space == "shared"}
    parts = (kernel.prologue, *_of_roles(kernel), kernel.epilogue)
    return any(_Reads(refilled).given_back(part) for part in parts)


def _of_roles(kernel: Kernel) -> tuple[tuple[Stmt, ...], ...]:
    return () if kernel.roles is None else tuple(role.body for role in kernel.roles.roles)


class _Reads:
    """A walk in program order, of loops twice; open: an ordinary read that no fence follows yet."""

    def __init__(self, refilled: Collection[Buffer]) -> None:
        self._refilled = refilled
        self._open = False

    def given_back(self, body: tuple[Stmt, ...]) -> bool:
        """Whether an arrival finds a read open, or the end does."""
        return self._found(body, alike=True) or self._open

    def _found(self, body: tuple[Stmt, ...], *, alike: bool) -> bool:
        """alike: whether all readers execute this, and certainly."""
        found = False
        for stmt in body:
            found |= self._one(stmt, alike=alike)
        return found

    def _one(self, stmt: Stmt, *, alike: bool) -> bool:
        match stmt:
            case Copy(source=source, atom=atom):
                self._open |= atom.proxy == "generic" and source.buffer in self._refilled
            case Fence(kind="async_proxy"):
                self._open &= not alike
            case Arrive():
                return self._open
            case For() | If() | One() | Roles():
                before = self._open
                inside = alike and isinstance(stmt, For)
                found = False
                for part in (*bodies(stmt), *bodies(stmt)):
                    found |= self._found(part, alike=inside)
                self._open |= before
                return found
            case _:
                pass
        return False
