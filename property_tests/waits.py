"""Kernels without the waits of their authors, and with those that the language inserts instead."""

from __future__ import annotations

from attrs import evolve

from argus.core.dsl.sync.automatic_waits import with_waits
from argus.core.ir import Kernel, Stmt, Wait, bodies, with_bodies


def without_waits(kernel: Kernel) -> Kernel:
    """The kernel, which has no roles, without waits for queues."""
    return evolve(kernel, prologue=_without(kernel.prologue))


def _without(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    kept = [stmt for stmt in body if not isinstance(stmt, Wait)]
    return tuple(with_bodies(stmt, tuple(_without(part) for part in bodies(stmt))) for stmt in kept)


def waiting_automatically(kernel: Kernel) -> Kernel:
    """The kernel, which has no roles, with inserted waits in place of its own."""
    bare = without_waits(kernel)
    return evolve(bare, prologue=with_waits(bare.prologue, kernel.target, frozenset()))
