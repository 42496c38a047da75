"""Control flow of a kernel: `loop`, `when`, `otherwise`, and the grid of blocks."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from types import FrameType

from attrs import evolve

from argus.core import algebra
from argus.core.dsl import source_location
from argus.core.dsl.faults import fault
from argus.core.dsl.handles import Bool, Int, IntLike, as_cond, axis_values, extent, number, unwrap
from argus.core.dsl.tracer import Scope, Tracer, current
from argus.core.index import Const, Index, Symbol
from argus.core.ir import For, If, Policy


class loop:  # noqa: N801 reason: reads as a keyword of the language
    """`for k in loop(n)`, `loop(lo, hi)`, `loop(lo, hi, step=-1)`: a loop of the kernel, traced once."""

    def __init__(self, *bounds: IntLike, step: int = 1, unroll: int | None = None) -> None:
        if len(bounds) not in (1, 2):
            fault("E106", f"`loop` takes one or two bounds, found {len(bounds)}", help="write `loop(lo, hi, step=s)`")
        self._step = number(step, "the step of a loop")
        if self._step == 0:
            fault("E212", "the step of a loop is zero", help="give a positive or negative step")
        self._start: Index = unwrap(bounds[0]) if len(bounds) == 2 else algebra.const(0)
        self._stop = unwrap(bounds[-1])
        self._unroll = None if unroll is None else extent(unroll, "the unrolling of a loop")

    def __iter__(self) -> Iteration:
        frame = source_location.user_frame()
        if frame is not None and not source_location.called_by_for(frame):
            fault(
                "E106",
                "a loop of the kernel is not the loop of a `for` statement",
                here="`enumerate`, `zip` and `list` would count its one traced iteration",
                help="write `for k in loop(...):`",
            )
        return Iteration(current("loop"), self._start, self._stop, self._step, self._unroll)


class Iteration:
    """The one traced iteration of a loop.

    A class, not a generator: `break` must leave the scope open, so that the tracer detects it.
    """

    def __init__(
        self, tracer: Tracer, start: Index, stop: Index, step: int, unroll: int | None, name: str = ""
    ) -> None:
        self._tracer = tracer
        self._name = name
        self._bounds = (start, stop, step, unroll)
        self._symbol = Symbol("", "loop")
        self._scope: Scope | None = None
        self._carried: dict[str, object] = {}

    def __iter__(self) -> Iteration:
        return self

    def __next__(self) -> Int:
        frame = source_location.user_frame()
        if self._scope is not None:
            self._leave(self._scope, frame)
            raise StopIteration
        start, stop, step, _ = self._bounds
        name = self._tracer.unique(self._name) if self._name else self._tracer.name("i")
        self._symbol = Symbol(name, "loop", *_loop_range(start, stop, step))
        self._scope = self._tracer.open("loop")
        if frame is not None:
            names = _names(frame)
            self._carried = {name: names[name] for name in source_location.carried_names(frame) if name in names}
        return Int(algebra.sym(self._symbol))

    def _leave(self, scope: Scope, frame: FrameType | None) -> None:
        body = self._tracer.close(scope)
        names: Mapping[str, object] = {} if frame is None else _names(frame)
        for name, before in self._carried.items():
            if names.get(name) is not before:
                _rebinding_fault(name, scope)
        start, stop, step, unroll = self._bounds
        self._tracer.emit(For(self._symbol, start, stop, step, body, unroll, span=scope.span))


def _names(frame: FrameType) -> Mapping[str, object]:
    return {**frame.f_globals, **frame.f_locals}


def _rebinding_fault(name: str, scope: Scope) -> None:
    fault(
        "E102",
        f"`{name}` is rebound inside a traced loop; a rebinding is not visible in the next iteration",
        here="in the body of this loop",
        span=scope.span,
        help=f"make `{name}` with `registers(...)` and assign it in place, or give the new value a new name",
    )


def _loop_range(start: Index, stop: Index, step: int) -> tuple[int | None, int | None]:
    """Constant bounds of the loop variable inside the body; None where there is none."""
    if step > 0:
        high = stop.range[1]
        return start.range[0], None if high is None else high - 1
    low = stop.range[0]
    return None if low is None else low + 1, start.range[1]


@contextmanager
def when(cond: Bool | bool) -> Generator[None]:
    """The body runs if the condition holds; the condition must be uniform over the wave."""
    tracer = current("when")
    node = as_cond(cond)
    scope = tracer.open("when")
    yield
    tracer.emit(If(node, tracer.leave(scope), span=scope.span))


@contextmanager
def otherwise() -> Generator[None]:
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
    body[-1] = evolve(last, otherwise=tracer.leave(scope))


def block_id(counts: tuple[IntLike, ...]) -> tuple[Int, ...]:
    """The coordinates of this block in a grid of `counts` blocks; declares the kernel's grid.

    With clusters, each count must be a multiple of the cluster's extent along that axis.
    """
    tracer = current("block_id")
    grid = tuple(unwrap(count) for count in axis_values(counts, "`block_id`"))
    if tracer.grid:
        fault("E106", "the grid is declared twice", help="call `block_id` once and keep its result")
    if len(grid) not in (1, 2, 3):
        fault("E106", f"a grid of {len(grid)} axes", help="a grid has one, two or three axes")
    tracer.grid = grid
    tracer.blocks = tuple(
        Symbol(tracer.unique(f"block_{axis}"), "block", 0, _last_index(count)) for axis, count in enumerate(grid)
    )
    tracer.cluster, tracer.rank = cluster_rank(tracer.cluster, tracer.blocks)
    return tuple(Int(algebra.sym(symbol)) for symbol in tracer.blocks)


def cluster_rank(cluster: tuple[int, ...], blocks: tuple[Symbol, ...]) -> tuple[tuple[int, ...], Index]:
    """The extents of a cluster along the axes of a grid, and this block's rank in it, first axis fastest.

    Raises E230 for a cluster of more axes.
    """
    sizes = (*cluster, *(1 for _ in blocks[len(cluster) :]))
    if len(sizes) > len(blocks):
        fault("E230", f"a cluster of {len(sizes)} axes in a grid of {len(blocks)}", help="give both the same axes")
    rank, below = algebra.const(0), 1
    for size, block in zip(sizes, blocks, strict=True):
        rank = algebra.add(rank, algebra.mul(algebra.mod(algebra.sym(block), size), below))
        below *= size
    return (sizes if below > 1 else (1,)), rank


def remap_xcd(
    block_id_function: Callable[[tuple[IntLike, ...]], tuple[Int, ...]], counts: tuple[IntLike, ...], *, group: int
) -> tuple[Int, ...]:
    """`block_id` on two axes, or three, with scheduling advice for L2 reuse on gfx942.

    The hardware assigns blocks round-robin to dies (XCDs), each with its own L2 cache. The remapping permutes the
    blocks so that each die gets a contiguous run of tiles, in supertiles of `group` rows, column by column; each
    index of a third axis by itself. The set of blocks does not change.
    """
    tracer = current("remap_xcd")
    if block_id_function is not block_id or tracer.target.name != "gfx942":
        fault("E106", "`remap_xcd` reorders the blocks of gfx942", help="write `remap_xcd(block_id, counts, group=4)`")
    if len(axis_values(counts, "`remap_xcd`")) not in (2, 3):
        fault("E106", f"dies share tiles of two axes, found {len(counts)}", help="give two counts of tiles, or three")
    tracer.emit(Policy("remap_xcd", (extent(group, "the rows of a band"),), span=tracer.span()))
    return block_id_function(counts)


def _last_index(count: Index) -> int | None:
    if isinstance(count, Const):
        return count.value - 1
    return None if count.range[1] is None else count.range[1] - 1
