"""Kernels of two tensors with a policy of waits, and their statements in order as text."""

# pyright: reportArgumentType=false
# Reason: what the type checker would refuse is what must be refused while tracing, too.

from __future__ import annotations

from collections.abc import Callable

import pytest

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir import Copy, For, If, Kernel, Mma, Stmt, Sync, Wait
from argus.language import (
    Tensor,
    block_id,
    f32,
    gfx942,
    kernel,
    sm_90a,
    spread,
)

Body = Callable[[Tensor, Tensor], None]
BY = spread((64,), threads=64, vector=1)


def traced(body: Body, target: object = gfx942, *, waits: str = "automatic", threads: int = 64) -> Kernel:
    """A kernel of X and Y (rows of 64, f32) that runs the body."""

    def made(X: Tensor["M 64", f32], Y: Tensor["M 64", f32]) -> None:
        block_id((X.shape[0],))
        body(X, Y)

    return kernel(target=target, threads=threads, waits=waits)(made).trace()


def fault_of(body: Body, target: object = sm_90a, *, threads: int = 64, waits: str = "automatic") -> Diagnostic:
    with pytest.raises(ArgusError) as caught:
        traced(body, target, threads=threads, waits=waits)
    return caught.value.diagnostic


def order(kernel: Kernel) -> list[str]:
    """Copies by their target's memory, barriers and waits, in program order; loops and branches as brackets."""
    return [text for stmt in kernel.body for text in _texts(stmt)]


def _texts(stmt: Stmt) -> list[str]:
    match stmt:
        case Wait(queue=queue, pending=pending, of=of):
            return [f"{queue}({pending})" + (f" {of}" if of != "all" else "")]
        case Copy(source=source, target=target):
            return [f"{source.buffer.space}->{target.buffer.space}"]
        case For(body=body):
            return ["loop[", *(text for inner in body for text in _texts(inner)), "]"]
        case If(then=then):
            return ["when[", *(text for inner in then for text in _texts(inner)), "]"]
        case Sync():
            return ["sync"]
        case Mma():
            return ["mma"]
        case _:
            return []
