"""The text of one statement."""

from __future__ import annotations

from argus.core.algebra import const
from argus.core.index import Symbol
from argus.core.ir import Kernel, Stmt
from argus.core.ir.pretty import pretty
from argus.core.target import gfx942


def kernel_of(*body: Stmt) -> Kernel:
    """A kernel without tensors that consists of these statements."""
    return Kernel(
        name="probe",
        target=gfx942,
        parameters=(),
        sizes=(),
        threads=256,
        grid=(const(1),),
        blocks=(Symbol("block_0", "block", 0, 0),),
        thread=Symbol("thread", "thread", 0, 255),
        prologue=body,
    )


def text_of(stmt: Stmt) -> str:
    return pretty(kernel_of(stmt))
