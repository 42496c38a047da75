"""The opcode table: every instruction that is modelled, one row each."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from argus.interp.gfx942 import (
    flat_memory,
    flow,
    global_memory,
    lanes,
    lds,
    lds_atomics,
    matrix,
    scalar_alu,
    scalar_memory,
    vector_compare,
    vector_eighth,
    vector_float,
    vector_half,
    vector_integer,
    vector_wide,
)
from argus.interp.gfx942.row import Form, Row

ROWS: tuple[Row, ...] = (
    *flow.ROWS,
    *scalar_alu.ROWS,
    *scalar_memory.ROWS,
    *vector_integer.ROWS,
    *vector_float.ROWS,
    *vector_wide.ROWS,
    *vector_half.ROWS,
    *vector_eighth.ROWS,
    *vector_compare.ROWS,
    *lanes.ROWS,
    *matrix.ROWS,
    *lds.ROWS,
    *lds_atomics.ROWS,
    *global_memory.ROWS,
    *flat_memory.ROWS,
)
_IN_VOP3: Mapping[Form, int] = {"VOPC": 0, "VOP2": 256, "VOP1": 320}
"""Where the opcodes of the short encodings begin among those of VOP3, which has all of them."""


@cache
def rows_by_opcode() -> Mapping[tuple[Form, int], Row]:
    """Rows by encoding and opcode, the long encodings of short ones included."""
    found: dict[tuple[Form, int], Row] = {}
    for each in ROWS:
        assert (each.form, each.number) not in found, each.name
        found[each.form, each.number] = each
    for each in ROWS:
        if each.form in _IN_VOP3:
            found.setdefault(("VOP3", each.number + _IN_VOP3[each.form]), each)
    return found
