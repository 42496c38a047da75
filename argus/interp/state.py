"""The state of one launch and of one of its blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal, cast

import numpy as np
from attrs import define, field

from argus.core.index import Symbol
from argus.core.ir import Buffer, Stmt
from argus.core.layout import TV
from argus.interp.compiled_kernel import Prepared, Scalars, registers_of
from argus.interp.machine.waves import Operation, SharedAccess, Wave
from argus.interp.memory.cells import Cells, IntArray, Records, Written, blank, unravel
from argus.interp.memory.trace import Asked, Journal, Spot
from argus.interp.search.schedule import Adversary
from argus.interp.values.tag_sources import Givers
from argus.interp.violation import Event, Reporter

Compared = tuple[Stmt, int, tuple[tuple[str, int], ...]]
"""A claim, the agent that makes it by its first thread, and the variables that its executions have in common."""


@define(eq=False)
class Launch:
    """One run of a kernel: its sizes, global memory, records, and what it found.

    halted: a block has not run to its end. widths: threads of each role that step together, once it has been checked.
    kept: names that some matrix instruction kept in its accumulators. varying: names that vary along the axis of a
    fold. keeps: whether what is stored keeps the sets of what it sums, for other launches or blocks. givers: of the
    inputs' records, once somebody has asked. gathered: what claims compare that no wave can judge alone.
    journal: of all writes, if it is wanted.
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
    kept: set[str] = field(factory=set[str])
    varying: set[tuple[Stmt, str]] = field(factory=set[tuple[Stmt, str]])
    keeps: bool = False
    givers: Givers | None = None
    journal: Journal | None = None
    gathered: dict[Compared, Gathered] = field(factory=dict["Compared", "Gathered"])

    @property
    def weighs(self) -> bool:
        """Whether weights of statistics are followed."""
        return self.values and self.prepared.weighs

    @property
    def moment(self) -> int:
        """The number of the next write, if a journal is kept."""
        return 0 if self.journal is None else self.journal.moment


@define(eq=False)
class Contribution:
    """The marks that one matrix instruction fed to the accumulators `cells` (m, n): a (m, k), b (n, k).

    tiling: the cells of all waves, the same object for the same tiling.
    """

    tiling: IntArray
    cells: IntArray
    a: IntArray
    b: IntArray


Standing = Literal["contracted", "kept", "unsure"]
"""What a sum made of a name that both operands of its products carry."""


@define(eq=False)
class Sum:
    """What is known of the sum in one wave's registers of a fragment.

    log: the products, counted only if some claim asks. standing: of their common names. open: nothing but those
    products was added, so that their records are the sum's. scaled: by a number, so that later products weigh
    otherwise than earlier ones.
    """

    log: list[Contribution] = field(factory=list[Contribution])
    standing: dict[str, Standing] = field(factory=dict[str, Standing])
    open: bool = True
    scaled: bool = False


@define(eq=False)
class Share:
    """What one wave holds at one execution of a claim about all elements, before write number `moment`."""

    block: Block
    event: Event
    columns: tuple[IntArray, ...]
    moment: int


@define(eq=False)
class Gathered:
    """What all waves hold at the executions that one claim compares."""

    shares: list[Share] = field(factory=list[Share])


Past = tuple[Stmt, Symbol, int, tuple[int, ...]]
"""A claim, its name for a component, a wave and the values of the loop variables around."""

Factors = tuple[tuple[IntArray, IntArray], ...]
"""The marks of both factors of each product that one wave's elements are the sum of, element by element."""

Held = tuple[Buffer, int]
"""The registers of one fragment in one wave."""


@define(eq=False)
class Block:
    """One block: shared memory, registers, waves, and the accesses that races are judged by.

    base: the first of its threads in the launched block, for reports; `scalars`: of its threads. past: what claims
    about earlier iterations found in them.
    """

    launch: Launch
    index: tuple[int, ...]
    waves: list[Wave]
    local: dict[Buffer, Cells] = field(factory=dict[Buffer, Cells])
    accesses: list[SharedAccess] = field(factory=list[SharedAccess])
    sums: dict[Held, Sum] = field(factory=dict[Held, Sum])
    products: dict[Held, Factors] = field(factory=dict["Held", "Factors"])
    base: int = 0
    past: dict[Past, IntArray] = field(factory=dict["Past", IntArray])

    @property
    def scalars(self) -> Scalars:
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
    ) -> None:
        """Report a violation; threads count from the first of this block's. origins: the cells at fault, if several.

        alike: more that fail as the element does.
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
            journal.asked[fault] = Asked(journal.moment, self.cells, self.base, origins, alike)

    def cells(self, buffer: Buffer) -> Cells:
        """The storage of a buffer, uninitialised at first."""
        launch = self.launch
        found = launch.tensors.get(buffer) if buffer.space == "global" else self.local.get(buffer)
        if found is None:
            if buffer.space == "register":
                threads, registers = registers_of(buffer)
                count = threads * registers
            else:
                count = int(launch.prepared.shared_cells(buffer).max()) + 1
            found = blank(count, buffer.dtype, values=launch.values, tags=launch.tags)
            self.local[buffer] = found
        return found

    def forget(self, wave: Wave, buffer: Buffer) -> None:
        """The sums in this wave's registers of `buffer` are no longer there."""
        self.sums.pop((buffer, wave.number), None)
        self.products.pop((buffer, wave.number), None)

    def settle(self, wave: Wave, buffer: Buffer, event: Event, use: str) -> bool:
        """Whether registers about to be `use`d (read, written) are in flight, which is reported."""
        flying = wave.flying.get(buffer)
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
    """Which element of a fragment's tile a register holds."""
    layout = cast(TV, buffer.layout)
    number = layout.threads(thread) + layout.values(value)
    return unravel(number, layout.tile)


def shared_element(prepared: Prepared, buffer: Buffer, cell: int) -> tuple[int, ...]:
    """Which element of a shared buffer a cell holds."""
    number = int(np.flatnonzero(prepared.shared_cells(buffer) == cell)[0])
    return unravel(number, [int(extent.range[0] or 0) for extent in buffer.shape])
