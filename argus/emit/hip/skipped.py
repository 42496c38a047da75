"""Products in place of which a wave skips those by 1 alone: a branch that is uniform over the wave."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from argus.core.algebra import coord
from argus.core.ir import Get, Map, Op, View
from argus.emit.arithmetic import literal
from argus.emit.registers import register_table
from argus.emit.scope import Scope, layout_of

SKIPPED = """\
// Whether some lane of the wave has a reason.
HELPER bool some_lane(bool reason) { return __builtin_amdgcn_ballot_w64(reason) != 0; }
"""


def skips_ones(lines: Sequence[str]) -> bool:
    """Whether lines of a kernel use `some_lane`."""
    return any("some_lane(" in line for line in lines)


def unless_ones(stmt: Map, lines: list[str], scope: Scope) -> list[str]:
    """The lines of a product, under a branch if it is one in place of a tile by factors in registers."""
    match stmt.elem:
        case Op(name="mul", args=(Get() as own, Get(view=view, at=at))) if _is_target(own, stmt):
            table = register_table(view, layout_of(stmt.target.buffer), stmt.span, at)
            one = literal(1.0, view.buffer.dtype)[0]
            tests = (f"{scope.element(view.buffer, int(each))} != {one}" for each in np.unique(table))
            return [f"if (some_lane({' || '.join(tests)})) {{", *(f"    {line}" for line in lines), "}"]
        case _:
            return lines


def _is_target(own: Get, stmt: Map) -> bool:
    """Whether it is the element that is assigned to: of another, skipping the product leaves out a copy."""
    here = tuple(map(coord, range(len(stmt.target.shape))))
    return _parts(own.view) == _parts(stmt.target) and own.at == here


def _parts(view: View) -> tuple[object, ...]:
    return view.buffer, view.shape, view.at, view.where, view.peer
