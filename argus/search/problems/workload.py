"""Lower bound of a kernel's work at given sizes, for speed-of-light bounds, with a list of what is unknown.

Operations are those of the claimed contraction of two matrices, if any; else those of the matrix instructions, if their
number depends on sizes only. An output counts if a claim states that all of it is written; an input as far as copies
certainly read it. Unknown work counts as 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import NoReturn, cast

from attrs import frozen

from argus.core.algebra import TRUE
from argus.core.cost.counts import all_groups, block_numbers, runs
from argus.core.cost.groups import block_groups, sizes_of
from argus.core.cost.machine import MACHINES
from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.index import Held, Index, Node, Read, Sym
from argus.core.ir import Assert, Buffer, For, If, Kernel, Let, Mma, Stmt, WrittenOnce, bodies, walk
from argus.core.walk import evaluate, symbols, topological
from argus.interp.memory.loading import inputs, outputs
from argus.policy.bounds import CEILINGS, Work
from argus.search.problems.required_reads import required_bytes
from argus.search.problems.traced import Traced
from argus.verifier.reference import Contraction, claimed_contraction

_TYPES = {name for each in CEILINGS.values() for name in each.peak}
_MOST = 1e30
_MOST_ELEMENTS = 1 << 44


@frozen
class WorkEstimate:
    """work: the known part. products: source of the operation count, as text. unknown: parts that are not counted."""

    work: Work
    products: str
    unknown: tuple[str, ...]

    @property
    def description(self) -> str:
        """One line for reports."""
        counted = f"{self.products}, {self.work.reads:,.0f} bytes read, {self.work.writes:,.0f} written"
        return f"{counted}; not known: {'; '.join(self.unknown)}" if self.unknown else counted


def work_of(kernel: Kernel, sizes: Mapping[str, int]) -> WorkEstimate:
    """The known work of a kernel at sizes. Raises KeyError for a missing size."""
    claimed = claimed_contraction(kernel)
    every, products, unknown = _flops(kernel, claimed, sizes)
    rates = CEILINGS[kernel.target.name].peak
    flops = {name: count for name, count in every.items() if name in rates}
    unknown += [f"the rate of products of {name or 'no type'}" for name in every if name not in rates]
    reads = writes = 0.0
    for each in inputs(kernel):
        whole = bytes_of(each, kernel, sizes)
        known = (
            whole
            if claimed is not None and each in (claimed.left, claimed.right)
            else required_bytes(each, kernel, sizes)
        )
        reads += known
        if known < whole:
            part = f"more than {known / whole:.0%}" if known else "any"
            unknown.append(f"whether {part} of {each.name} is read")
    whole = _fully_written(kernel)
    for each in outputs(kernel):
        writes += bytes_of(each, kernel, sizes) if each in whole else 0.0
        if each not in whole:
            unknown.append(f"how much of {each.name} is written")
    return WorkEstimate(Work.of(flops, reads, writes), products, tuple(unknown))


def least_work(made: Sequence[WorkEstimate]) -> WorkEstimate:
    """The least work among several kernels of one problem."""
    return min(made, key=lambda each: (sum(count for _, count in each.work.flops), each.work.bytes))


def declared_work(work: Callable[..., object], sizes: Mapping[str, int]) -> WorkEstimate:
    """Work declared by a file's function: `flops` by element type, bytes as `reads` and `writes`, each 0 if absent.

    Raises ArgusError (E903) for any other result.
    """
    try:
        found = work(**sizes)
    except Exception as fault:  # noqa: BLE001 reason: the user's own code may raise anything
        _refuse(
            f"`work` raised {type(fault).__name__}: {fault}", f"its parameters must be the sizes {', '.join(sizes)}"
        )
    return parse_declared_work(found)


def parse_declared_work(found: object) -> WorkEstimate:
    """Parse the result of a file's `work` function; see `declared_work`."""
    advice = 'return {"flops": {"bf16": 2.0 * M * N * K}, "reads": bytes, "writes": bytes}'
    if not isinstance(found, Mapping) or not cast("Mapping[object, object]", found).keys() <= {
        "flops",
        "reads",
        "writes",
    }:
        _refuse("`work` returned another type or other keys", advice)
    given = cast("Mapping[str, object]", found)
    flops = given.get("flops", {})
    if not isinstance(flops, Mapping):
        _refuse("`flops` of `work` is not a mapping from element type to count", advice)
    counts = {str(name): _count(value, advice) for name, value in cast("Mapping[object, object]", flops).items()}
    if not counts.keys() <= _TYPES:
        _refuse(f"`flops` of `work` are of {', '.join(counts)}, expected {', '.join(sorted(_TYPES))}", advice)
    reads, writes = (_count(given.get(name, 0), advice) for name in ("reads", "writes"))
    return WorkEstimate(
        Work.of(counts, reads, writes), f"{sum(counts.values()):,.0f} operations that the file declares", ()
    )


def _count(value: object, advice: str) -> float:
    if isinstance(value, int | float) and 0 <= value < _MOST:
        return float(value)
    _refuse(f"`work` returned the count {value!r}", advice)


def _refuse(message: str, advice: str) -> NoReturn:
    raise ArgusError(Diagnostic("E903", "error", message, help=advice))


def _flops(
    kernel: Kernel, claimed: Contraction | None, sizes: Mapping[str, int]
) -> tuple[dict[str, float], str, list[str]]:
    issued = {each for each in walk(kernel.body) if isinstance(each, Mma)}
    if not issued:
        return {}, "no matrix instructions", ["other arithmetic"]
    types = {_type(each) for each in issued}
    if claimed is not None and len(types) == 1:
        (m, n), k = shape_of(claimed.output, kernel, sizes), _depth(claimed, kernel, sizes)
        return {types.pop(): 2.0 * m * n * k}, f"2 x {m:,} x {n:,} x {k:,} operations that are claimed", []
    if not _is_data_independent(kernel):
        return {}, "no products counted", ["the number of matrix instructions, which depends on data or blocks"]
    try:
        flops = _instruction_flops(kernel, sizes)
    except OverflowError:
        return {}, "no products counted", ["the number of matrix instructions, which exceeds 64 bits"]
    return flops, f"{sum(flops.values()):,.0f} operations of matrix instructions", ["other arithmetic"]


def _depth(claimed: Contraction, kernel: Kernel, sizes: Mapping[str, int]) -> int:
    return prod(shape_of(claimed.left, kernel, sizes)) // max(1, shape_of(claimed.output, kernel, sizes)[0])


def _type(stmt: Mma) -> str:
    """Element type of the operands."""
    dtype = stmt.atom.operands["a"].dtype
    return "" if dtype is None else dtype.name


def _instruction_flops(kernel: Kernel, sizes: Mapping[str, int]) -> dict[str, float]:
    """Operations by type: those of the first block, which equal those of every block, times the number of blocks."""
    blocks = prod(_number(extent, kernel, sizes) for extent in kernel.grid)
    flops: dict[str, float] = {}
    for group in all_groups(block_groups(kernel, block_numbers(kernel, sizes))):
        for run in runs(group, MACHINES[kernel.target.name], []):
            if isinstance(run.stmt, Mma):
                left, right = (run.stmt.atom.operands[name] for name in ("a", "b"))
                each = 2.0 * left.tile[0] * left.tile[1] * right.tile[0]
                dtype = _type(run.stmt)
                flops[dtype] = flops.get(dtype, 0.0) + blocks * run.times * run.cost.products * each
    return flops


def _is_data_independent(kernel: Kernel) -> bool:
    """Whether all blocks execute the same number of matrix instructions, independent of data."""
    data = {each.symbol for each in walk(kernel.body) if isinstance(each, Let)}
    others = data | set(kernel.blocks)
    loops = [each for each in walk(kernel.body) if isinstance(each, For)]
    roots = tuple(_enclosing_expressions(kernel.body))
    around = symbols(*roots)
    # A loop symbol is block- or data-dependent if the loop's bounds are: propagate to a fixpoint.
    for _ in loops:
        others |= {each.symbol for each in loops if symbols(each.start, each.stop) & others}
    return not around & others and not any(isinstance(each, Read | Held) for each in topological(roots))


def _enclosing_expressions(body: tuple[Stmt, ...]) -> Iterator[Node]:
    """Conditions and loop bounds that enclose matrix instructions."""
    for stmt in body:
        if any(isinstance(each, Mma) for part in bodies(stmt) for each in walk(part)):
            match stmt:
                case If(cond=cond):
                    yield cond
                case For(start=start, stop=stop):
                    yield from (start, stop)
                case _:
                    pass
            for part in bodies(stmt):
                yield from _enclosing_expressions(part)


def _fully_written(kernel: Kernel) -> set[Buffer]:
    """Outputs for which a claim states that all of it is written."""
    claims = [each.claim for each in walk(kernel.body) if isinstance(each, Assert)]
    return {
        each.view.buffer
        for each in claims
        if isinstance(each, WrittenOnce) and each.where is TRUE and each.view.shape == each.view.buffer.shape
    }


def shape_of(buffer: Buffer, kernel: Kernel, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """A buffer's shape at sizes."""
    return tuple(_number(extent, kernel, sizes) for extent in buffer.shape)


def size_sources(kernel: Traced) -> dict[str, tuple[str, int]]:
    """For each size, a (tensor, axis) whose extent it is."""
    found: dict[str, tuple[str, int]] = {}
    for buffer in kernel.parameters:
        for axis, extent in enumerate(buffer.shape):
            if isinstance(extent, Sym):
                found.setdefault(extent.symbol.name, (buffer.name, axis))
    return found


def oversized_parameter(kernel: Kernel, sizes: Mapping[str, int]) -> Buffer | None:
    """A parameter too large for any machine; None if there is none."""
    return next((each for each in kernel.parameters if prod(shape_of(each, kernel, sizes)) > _MOST_ELEMENTS), None)


def bytes_of(buffer: Buffer, kernel: Kernel, sizes: Mapping[str, int]) -> float:
    """A buffer's size in bytes."""
    return prod(shape_of(buffer, kernel, sizes)) * buffer.dtype.bits / 8


def _number(extent: Index, kernel: Kernel, sizes: Mapping[str, int]) -> int:
    return int(cast(int, evaluate(extent, sizes_of(kernel, sizes))))
