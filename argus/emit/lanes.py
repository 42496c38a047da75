"""C text that reads registers of other lanes of a warp, by `lane_xor` and `lane_from` of the targets' preludes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from attrs import frozen

from argus.core.layout import IntArray
from argus.emit.scope import Scope


@frozen
class Fetched:
    """Text that fetches elements: tables, lines that read one element, its value, and whether there is one."""

    declared: tuple[str, ...]
    lines: tuple[str, ...]
    value: str
    present: str = "true"


@frozen
class LaneText:
    """unit: lanes of a warp."""

    scope: Scope
    unit: int

    @property
    def declared(self) -> list[str]:
        """The declaration of `own_lane`, the thread's index in its warp."""
        return [f"const int own_lane = {self.scope.names.symbols[self.scope.thread]} % {self.unit};"]

    def fetched(
        self, source: Callable[[int], str], kind: str, cells: IntArray, registers: int, at: str = ""
    ) -> Fetched:
        """How each thread fetches its element number `at` of `cells`, the only one without `at`.

        source: the text of a register. kind: its C type. cells: shape (elements, threads), lane times `registers` plus
        register, -1 for none.
        """
        lanes = lane_text(cells[0] // registers, cells[0] >= 0, self.unit)
        own = np.unique(cells[0][cells[0] >= 0] % registers)
        if len(cells) == 1 and lanes and len(own) == 1:
            register = source(int(own[0]))
            return Fetched((), (), register if lanes == "own_lane" else f"lane_from({register}, {lanes})")
        rows = ", ".join(f"{{{', '.join(map(str, row))}}}" for row in cells.tolist())
        table = f"static const int cells[{len(cells)}][{cells.shape[1]}] = {{{rows}}};"
        thread = self.scope.names.symbols[self.scope.thread]
        lines = [
            f"const int cell = cells[{at or 0}][{thread}];",
            f"{kind} found = lane_from({source(0)}, cell / {registers});",
        ]
        for register in range(1, registers):
            lines.append(f"const {kind} found{register} = lane_from({source(register)}, cell / {registers});")
            lines.append(f"if (cell % {registers} == {register}) found = found{register};")
        return Fetched((table,), tuple(lines), "found", "cell >= 0")


def lane_text(lanes: IntArray, present: IntArray, unit: int) -> str:
    """C text over `own_lane` of the lane that each thread reads; empty if it is no simple function of the thread's own.

    lanes: by thread; only those with `present` matter.
    """
    own = np.arange(len(lanes)) % unit
    own, wanted = own[present], lanes[present]
    kept, fixed = 0, 0
    for bit in range(unit.bit_length() - 1):
        mask = 1 << bit
        if ((own ^ wanted) & mask == 0).all():
            kept |= mask
        elif (wanted & mask).all():
            fixed |= mask
    if np.array_equal(own & kept | fixed, wanted):
        text = "own_lane" if kept == unit - 1 else f"(own_lane & {kept})" if kept else ""
        return " | ".join(part for part in (text, str(fixed) if fixed or not text else "") if part)
    distance = np.unique(own - wanted)
    return f"own_lane - {distance[0]}" if len(distance) == 1 else ""


def affine_registers(rows: Sequence[Sequence[int]], names: tuple[str, str]) -> tuple[str, str] | None:
    """C texts of the registers of rows of equal length, over the counters `names` of rows and of places in a row.

    The first text is that of place 0. None if the registers are not affine in both counters.
    """
    if any(len(row) != len(rows[0]) for row in rows):
        return None
    table = np.array(rows)
    first = int(table[0, 0])
    down = int(table[1, 0]) - first if len(table) > 1 else 0
    across = int(table[0, 1]) - first if table.shape[1] > 1 else 0
    place, at = np.indices(table.shape, dtype=np.int64)
    if not np.array_equal(first + down * place + across * at, table):
        return None
    return _affine(first, ((down, names[0]),)), _affine(first, ((down, names[0]), (across, names[1])))


def _affine(first: int, terms: Sequence[tuple[int, str]]) -> str:
    texts = [name if factor == 1 else f"{factor} * {name}" for factor, name in terms if factor]
    return " + ".join([*texts, *([str(first)] if first or not texts else [])])
