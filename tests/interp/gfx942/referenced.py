"""The rows of the opcode table that tests compare with references of their own, read off those tests' lines."""

from __future__ import annotations

from argus.interp.gfx942.table import ROWS
from tests.interp.gfx942 import (
    test_arithmetic,
    test_atomics,
    test_compare,
    test_flat_memory,
    test_flow,
    test_half_and_wide,
    test_matrix,
    test_memory,
    test_modes_and_parts,
    test_scalar,
)

_LINES: tuple[str, ...] = (
    *test_arithmetic.LINES.values(),
    *test_arithmetic.OTHERS,
    *test_atomics.LINES.values(),
    *test_compare.LINES.values(),
    *test_compare.DIVISION,
    *test_half_and_wide.LINES.values(),
    *test_half_and_wide.OTHERS,
    *test_matrix.LINES.values(),
    *test_memory.LINES.values(),
    *test_memory.OTHERS,
    *test_memory.SCALAR_LOADS.values(),
    *test_memory.BUFFER_LOADS.values(),
    *test_flat_memory.LINES.values(),
    *test_flow.LINES.values(),
    *test_flow.PLACES.values(),
    *test_modes_and_parts.LINES,
    *test_scalar.LINES.values(),
)
_FLOW = frozenset({"s_nop", "s_waitcnt", "s_barrier", "s_endpgm", "s_trap"})
"""The tests of findings depend on what these do."""
_WITHOUT_EFFECT = frozenset(
    {
        "s_setprio",
        "s_sleep",
        "s_icache_inv",
        "s_wakeup",
        "s_sendmsg",
        "s_dcache_inv",
        "s_dcache_wb",
        "v_nop",
        "buffer_wbl2",
        "buffer_inv",
    }
)


def _row_name(line: str) -> str:
    name = line.split(maxsplit=1)[0]
    for end in ("_e32", "_e64", "_dpp", "_sdwa"):
        name = name.removesuffix(end)
    return name


NAMES = (frozenset(map(_row_name, _LINES)) | _FLOW | _WITHOUT_EFFECT) & {row.name for row in ROWS}
