"""Write-after-read across proxies: generic-proxy reads of a stage that TMA refills, with or without a proxy fence."""

from __future__ import annotations

from collections.abc import Collection

from argus.core.ir import Arrive, Buffer, Copy, Fence, For, If, Kernel, One, Roles, Stmt, bodies, walk


def has_unfenced_refills(kernel: Kernel) -> bool:
    """Whether a stage that TMA refills may be released after generic-proxy reads without a fence of its readers."""
    copies = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Copy)]
    refilled = {s.target.buffer for s in copies if s.atom.proxy == "async" and s.target.buffer.space == "shared"}
    parts = (kernel.prologue, *_role_bodies(kernel), kernel.epilogue)
    return any(_OpenReads(refilled).released_unfenced(part) for part in parts)


def _role_bodies(kernel: Kernel) -> tuple[tuple[Stmt, ...], ...]:
    return () if kernel.roles is None else tuple(role.body for role in kernel.roles.roles)


class _OpenReads:
    """A walk in program order, through loop bodies twice. open: whether some generic-proxy read has no fence yet."""

    def __init__(self, refilled: Collection[Buffer]) -> None:
        self._refilled = refilled
        self._open = False

    def released_unfenced(self, body: tuple[Stmt, ...]) -> bool:
        """Whether a read is open at some arrival or at the end."""
        return self._walk(body, unconditional=True) or self._open

    def _walk(self, body: tuple[Stmt, ...], *, unconditional: bool) -> bool:
        """unconditional: all readers certainly execute this."""
        found = False
        for stmt in body:
            found |= self._step(stmt, unconditional=unconditional)
        return found

    def _step(self, stmt: Stmt, *, unconditional: bool) -> bool:
        match stmt:
            case Copy(source=source, atom=atom):
                self._open |= atom.proxy == "generic" and source.buffer in self._refilled
            case Fence(kind="async_proxy"):
                self._open &= not unconditional
            case Arrive():
                return self._open
            case For() | If() | One() | Roles():
                before = self._open
                inside = unconditional and isinstance(stmt, For)
                found = False
                for part in (*bodies(stmt), *bodies(stmt)):
                    found |= self._walk(part, unconditional=inside)
                self._open |= before
                return found
            case _:
                pass
        return False
