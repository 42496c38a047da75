"""The mutable state of an interpreted launch and of one of its blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import numpy as np
from attrs import define, field

from argus.core.dtype import DType
from argus.core.index import Symbol
from argus.core.ir import Buffer, Stmt
from argus.core.layout import TV
from argus.interp.compiled_kernel import Prepared, Scalars, registers_of
from argus.interp.machine.waves import Operation, SharedAccess, Wave
from argus.interp.memory.cells import AnyArray, Cells, IntArray, Records, Written, blank, storage, unravel
from argus.interp.memory.trace import FaultContext, Journal, Spot
from argus.interp.search.schedule import Adversary
from argus.interp.values.precision import IN_FLOAT64, Precision
from argus.interp.values.suspicions import Suspicions
from argus.interp.values.tag_sources import TagSources
from argus.interp.violation import Event, Reporter

Compared = tuple[Stmt, int, tuple[tuple[str, int], ...]]
"""A claim, the first thread of the agent that makes it, and the values of the variables that its executions share."""


@define(eq=False)
class Launch:
    """One run of a kernel: its sizes, global memory, tag records, and violations.

    halted: some block did not run to its end. widths: per role, the number of threads that execute in lockstep, once
    checked. varying: names that vary along the axis of a reduction. suspicions: combinations of elements that violate a
    claim about the result. records_sets: whether stores record the sets that a sum ranges over, for other launches or
    blocks. tag_sources: the elements that the inputs' records belong to, once computed. distinct_elements: elements of
    claims of distinctness, which compare several waves. journal: the trace of all writes, if requested. exact: floats
    are computed in float64 and rounded to no other type, so that values can be compared with formulas over the reals.
    compared: values are compared with formulas, in float64 or rounded to their types. precision: what is taken for
    rounding where they are.
    claimed: tensors whose writes are recorded for claims of the program. initial: what tensors held before the launch,
    of those that claims name so.
    """

    prepared: Prepared
    sizes: Mapping[Symbol, int]
    tensors: dict[Buffer, Cells]
    values: bool
    tags: bool
    adversary: Adversary
    reporter: Reporter
    records: Records = field(factory=Records)
    written: dict[Buffer, Written] = field(factory=dict[Buffer, Written])
    writes: list[tuple[Event, int]] = field(factory=list[tuple[Event, int]])
    coverage: Counter[Stmt] = field(factory=Counter[Stmt])
    halted: bool = False
    widths: dict[str, int] = field(factory=dict[str, int])
    varying: set[tuple[Stmt, str]] = field(factory=set[tuple[Stmt, str]])
    suspicions: Suspicions = field(factory=Suspicions)
    records_sets: bool = False
    tag_sources: TagSources | None = None
    journal: Journal | None = None
    exact: bool = False
    compared: bool = False
    precision: Precision = IN_FLOAT64
    claimed: frozenset[Buffer] = frozenset()
    initial: dict[str, AnyArray] = field(factory=dict[str, AnyArray])
    distinct_elements: dict[Compared, Gathered] = field(factory=dict["Compared", "Gathered"])

    def storage(self, dtype: DType) -> np.dtype[Any]:
        """The NumPy type in which this run holds values of a type."""
        return storage(dtype, exact=self.exact)

    @property
    def moment(self) -> int:
        """The number of the next write in the journal; 0 without one."""
        return 0 if self.journal is None else self.journal.moment


@define(eq=False)
class Contribution:
    """The marks of the operands that one matrix instruction multiplied into the accumulators `cells` (m, n).

    a: (m, k); b: (n, k). tiling: the accumulator cells of all waves, the same object for the same tiling.
    """

    tiling: IntArray
    cells: IntArray
    a: IntArray
    b: IntArray


NameStatus = Literal["contracted", "kept", "unsure"]
"""The status in a sum of a tag name that both operands carry: reduced over, the same for all products, or undecided."""


@define(eq=False)
class Sum:
    """The sum that one wave's registers of a fragment hold, as far as it is known.

    log: the products, evaluated only if a claim needs them. name_status: the status of their common tag names. open:
    nothing but these products was added, so that their records determine the sum's. scaled: the sum was multiplied by
    a number, so that later products have another weight than earlier ones.
    """

    log: list[Contribution] = field(factory=list[Contribution])
    name_status: dict[str, NameStatus] = field(factory=dict[str, NameStatus])
    open: bool = True
    scaled: bool = False


@define(eq=False)
class Share:
    """The elements of one wave at one execution of a claim about all elements, before write number `moment`."""

    block: Block
    event: Event
    columns: tuple[IntArray, ...]
    moment: int


@define(eq=False)
class Gathered:
    """The elements of all waves at the executions that one claim compares."""

    shares: list[Share] = field(factory=list[Share])


Past = tuple[Stmt, Symbol, int, tuple[int, ...]]
"""A claim, its symbol for a component, a wave, and the values of the enclosing loop variables."""

Factors = tuple[tuple[IntArray, IntArray], ...]
"""For each product in the sums of one wave's elements, the marks of its two factors, element by element."""

Held = tuple[Buffer, int]
"""The registers of one fragment in one wave."""


@define(eq=False)
class Block:
    """One block: shared memory, registers, waves, and the shared-memory accesses for race detection.

    base: the number of its first thread in the launched block, for reports. past: components that claims about earlier
    iterations recorded.
    """

    launch: Launch
    index: tuple[int, ...]
    waves: list[Wave]
    local: dict[Buffer, Cells] = field(factory=dict[Buffer, Cells])
    accesses: list[SharedAccess] = field(factory=list[SharedAccess])
    sums: dict[Held, Sum] = field(factory=dict[Held, Sum])
    above: set[Held] = field(factory=set[Held])
    products: dict[Held, Factors] = field(factory=dict["Held", "Factors"])
    base: int = 0
    past: dict[Past, IntArray] = field(factory=dict["Past", IntArray])

    @property
    def scalars(self) -> Scalars:
        """The evaluator of uniform expressions for the block's threads."""
        return self.launch.prepared.scalars

    def report(
        self,
        code: str,
        message: str,
        event: Event,
        *,
        thread: int,
        value: int | None = None,
        element: Sequence[int] | None = None,
        buffer: str = "",
        other: Event | None = None,
        other_thread: int | None = None,
        facts: tuple[tuple[str, str], ...] = (),
        origins: tuple[Spot, ...] = (),
        alike: tuple[Spot, ...] = (),
        moment: int | None = None,
    ) -> None:
        """Report a violation; threads are numbered from this block's first. origins: the faulty cells, if several.

        alike: further cells that fail in the same way. moment: that of the fault, if it is not the present one.
        """
        kept = self.launch.reporter.report(
            code,
            message,
            event,
            thread=self.base + thread,
            value=value,
            element=element,
            buffer=buffer,
            other=other,
            other_thread=None if other_thread is None else self.base + other_thread,
            facts=facts,
        )
        journal = self.launch.journal
        if kept and journal is not None:
            fault = code, event.stmt, None if other is None else other.stmt
            at = journal.moment if moment is None else moment
            journal.contexts[fault] = FaultContext(at, self.cells, self.base, origins, alike)

    def cells(self, buffer: Buffer) -> Cells:
        """The storage of a buffer, allocated uninitialised on first use."""
        launch = self.launch
        found = launch.tensors.get(buffer) if buffer.space == "global" else self.local.get(buffer)
        if found is None:
            if buffer.space == "register":
                threads, registers = registers_of(buffer)
                count = threads * registers
            else:
                count = int(launch.prepared.shared_cells(buffer).max()) + 1
            found = blank(count, buffer.dtype, values=launch.values, tags=launch.tags, exact=launch.exact)
            self.local[buffer] = found
        return found

    def drop_sums(self, wave: Wave, buffer: Buffer) -> None:
        """Discard what is known of the sums and signs in this wave's registers of `buffer`, which are overwritten."""
        self.sums.pop((buffer, wave.number), None)
        self.products.pop((buffer, wave.number), None)
        self.above.discard((buffer, wave.number))

    def check_in_flight(self, wave: Wave, buffer: Buffer, event: Event, use: str) -> bool:
        """Report a `use` (read, written) of registers that a pending copy writes (I31); returns whether there is one.

        Operations that the hardware or the compiler tracks are completed instead.
        """
        flying = wave.pending_loads.get(buffer)
        if not flying:
            return False
        tracked = [operation for operation in flying if operation.stmt.atom.completion.tracked]
        for operation in tracked:
            wave.queue(str(operation.stmt.atom.completion.queue)).complete(operation)
            flying.remove(operation)
        if flying:
            self._in_flight(wave, buffer, event, flying[0], use)
        return bool(flying)

    def _in_flight(self, wave: Wave, buffer: Buffer, event: Event, operation: Operation, use: str) -> None:
        self.report(
            "I31",
            f"`{buffer.name}` is {use} while the copy into it is in flight",
            event,
            thread=wave.first,
            value=0,
            element=coordinates(buffer, wave.first, 0),
            buffer=buffer.name,
            other=operation.event,
            other_thread=wave.first,
            facts=(("queue", str(operation.stmt.atom.completion.queue)),),
        )


def coordinates(buffer: Buffer, thread: int, value: int) -> tuple[int, ...]:
    """The coordinates in a fragment's tile of the element that a register holds."""
    layout = cast(TV, buffer.layout)
    number = layout.threads(thread) + layout.values(value)
    return unravel(number, layout.tile)


def shared_element(prepared: Prepared, buffer: Buffer, cell: int) -> tuple[int, ...]:
    """The coordinates in a shared buffer of the element that a cell holds."""
    number = int(np.flatnonzero(prepared.shared_cells(buffer) == cell)[0])
    return unravel(number, [int(extent.range[0] or 0) for extent in buffer.shape])
