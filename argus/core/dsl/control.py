"""Loops and branches of the kernel."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from attrs import evolve

from argus.core import algebra
from argus.core.dsl import place
from argus.core.dsl.faults import fault
from argus.core.dsl.handles import Bool, Int, IntLike, as_cond, unwrap
from argus.core.dsl.tracer import Scope, Tracer, current
from argus.core.index import Const, Index, Symbol
from argus.core.ir import For, If


class loop:  # noqa: N801 reason: reads as a keyword of the language
    """`for k in loop(n)`, `loop(lo, hi)`, `loop(lo, hi, step=-1)`: a loop of the kernel, traced once.

    A class, not a generator: a loop left by `break` must leave its scope open, so that the trace notices.
    """

    def __init__(self, *bounds: IntLike, step: int = 1, unroll: int | None = None) -> None:
        if len(bounds) not in (1, 2):
            fault("E106", f"`loop` takes one or two bounds, found {len(bounds)}")
        if step == 0:
            fault("E212", "the step of a loop is zero", help="give a positive or negative step")
        self._start: Index = unwrap(bounds[0]) if len(bounds) == 2 else algebra.const(0)
        self._stop = unwrap(bounds[-1])
        self._step = step
        self._unroll = unroll
        self._scope: Scope | None = None
        self._tracer: Tracer | None = None
        self._symbol = Symbol("", "loop")
        self._carried: dict[str, Any] = {}

    def __iter__(self) -> loop:
        return self

    def __next__(self) -> Int:
        frame = place.user_frame()
        if self._scope is None:
            return self._enter(frame)
        self._leave(frame)
        raise StopIteration

    def _enter(self, frame: FrameType | None) -> Int:
        tracer = current("loop")
        self._tracer = tracer
        low, high = _bounds(self._start, self._stop, self._step)
        self._symbol = Symbol(tracer.name("i"), "loop", low, high)
        self._scope = tracer.open("loop")
        if frame is not None:
            local = frame.f_locals
            self._carried = {name: local[name] for name in place.carried_names(frame) if name in local}
        return Int(algebra.sym(self._symbol))

    def _leave(self, frame: FrameType | None) -> None:
        assert self._tracer is not None
        assert self._scope is not None
        body = self._tracer.close(self._scope)
        local = {} if frame is None else frame.f_locals
        for name, before in self._carried.items():
            if local.get(name) is not before:
                fault(
                    "E102",
                    f"`{name}` is rebound inside a traced loop; a rebinding does not carry to the next iteration",
                    here="in the body of this loop",
                    span=self._scope.span,
                    help=f"make `{name}` with `registers(...)` and assign it in place, or give the new value a new name",
                )
        self._tracer.emit(
            For(self._symbol, self._start, self._stop, self._step, body, self._unroll, span=self._scope.span)
        )


def _bounds(start: Index, stop: Index, step: int) -> tuple[int | None, int | None]:
    """Constants that enclose the loop variable wherever the body runs."""
    if step > 0:
        high = stop.range[1]
        return start.range[0], None if high is None else high - 1
    low = stop.range[0]
    return None if low is None else low + 1, start.range[1]


@contextmanager
def when(cond: Bool | bool) -> Iterator[None]:
    """The body runs where the condition holds; it must be uniform over the wave."""
    tracer = current("when")
    scope = tracer.open("when")
    node = as_cond(cond)
    yield
    tracer.emit(If(node, tracer.close(scope), span=scope.span))


@contextmanager
def otherwise() -> Iterator[None]:
    """The other branch of the `when` just before."""
    tracer = current("otherwise")
    body = tracer.scopes[-1].body
    last = body[-1] if body else None
    if not isinstance(last, If) or last.otherwise:
        fault(
            "E106", "`otherwise` does not follow a `when`", help="put `with otherwise():` right after its `with when`"
        )
    scope = tracer.open("otherwise")
    yield
    body[-1] = evolve(last, otherwise=tracer.close(scope))


def block_id(counts: tuple[IntLike, ...]) -> tuple[Int, ...]:
    """The coordinates of this block in a grid of `counts` blocks; declares the kernel's grid."""
    tracer = current("block_id")
    grid = tuple(unwrap(count) for count in counts)
    if tracer.grid:
        fault("E106", "the grid is declared twice", help="call `block_id` once and keep its result")
    tracer.grid = grid
    tracer.blocks = tuple(
        Symbol(tracer.unique(f"block_{axis}"), "block", 0, _last(count)) for axis, count in enumerate(grid)
    )
    return tuple(Int(algebra.sym(symbol)) for symbol in tracer.blocks)


def _last(count: Index) -> int | None:
    if isinstance(count, Const):
        return count.value - 1
    return None if count.range[1] is None else count.range[1] - 1
