"""The types `Law` and `Breach`, and comparisons that return a `Breach` or None."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Union

import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from argus.core.layout.compose import Tiler
from argus.core.layout.faults import LayoutError
from argus.core.layout.inttuple import IntTuple, flatten
from argus.core.layout.swizzle import Swizzle
from argus.core.layout.values import Layout
from argus.testing.laws.implementation import ARGUS, Implementation
from argus.testing.laws.tabulated import IntArray, Modes, flat

Kind = Literal["layout", "inner", "tiler", "cotarget", "count", "shape", "swizzle"]
KINDS: dict[Kind, str] = {
    "layout": "any layout",
    "inner": "a layout whose images lie below the size of the operand before",
    "tiler": "None, an int or a layout, or a tuple of these for the modes of the first operand",
    "cotarget": "a positive int",
    "count": "a positive int, elements of a vector",
    "shape": "an int-tuple of positive extents",
    "swizzle": "any swizzle",
}
"""The kinds of operands that laws quantify over."""

Operand = Union[Layout, Swizzle, Tiler, IntTuple]


@frozen
class Breach:
    """Operands for which a law does not hold.

    index: the smallest index at which values differ; None if the fault is a size, a structure or a refusal.
    """

    operands: tuple[Operand, ...]
    index: int | None
    expected: int | str
    found: int | str

    def __str__(self) -> str:
        place = "" if self.index is None else f"at index {self.index} "
        return f"{', '.join(map(str, self.operands))}: {place}expected {self.expected}, found {self.found}"


@frozen
class Law:
    """A statement that is true for all operands of the given kinds.

    decide: decides it for an implementation and concrete operands by tables, and returns None if it holds. A refusal
    (LayoutError) breaks a law unless an independent search confirms that no admissible result exists. needs: the
    functions that it calls. `argus.testing.operands.search` looks for a breach.
    """

    name: str
    statement: str
    source: str
    operands: tuple[Kind, ...]
    decide: Callable[..., Breach | None] = field(repr=False)
    needs: tuple[str, ...] = ()

    def check(self, implementation: Implementation, *operands: Operand) -> Breach | None:
        """The breach of the law by an implementation at these operands, or None if it holds there.

        Raises LayoutError (E814) if the implementation lacks a function that the law needs.
        """
        for name in self.needs:
            _ = implementation[name]
        try:
            return self.decide(implementation, *operands)
        except LayoutError as error:
            return needless_refusal(operands, error)

    def breach(self, *operands: Operand) -> Breach | None:
        """`check` of Argus."""
        return self.check(ARGUS, *operands)

    @classmethod
    def of(
        cls,
        statement: str,
        operands: tuple[Kind, ...],
        holds: Callable[..., bool],
        *,
        name: str = "",
        needs: tuple[str, ...] = (),
        source: str = "",
    ) -> Law:
        """A law of your own. holds: whether it is true, for an implementation and operands; a refusal breaks it."""

        def decide(on: Implementation, *given: Operand) -> Breach | None:
            return None if holds(on, *given) else Breach(given, None, statement, "not so")

        return cls(name or statement, statement, source, operands, decide, needs)


# -- verdicts ------------------------------------------------------------------------------------------------


def modes(layout: Layout) -> Modes:
    return flat(layout.shape, layout.stride)


def table_mismatch(operands: tuple[Operand, ...], wanted: IntArray, found: IntArray) -> Breach | None:
    """The first index at which two tables differ; None if they are equal."""
    if len(wanted) != len(found):
        return Breach(operands, None, f"size {len(wanted)}", f"size {len(found)}")
    wrong = np.flatnonzero(wanted != found)
    if not len(wrong):
        return None
    index = int(wrong[0])
    return Breach(operands, index, int(wanted[index]), int(found[index]))


def failed_condition(operands: tuple[Operand, ...], met: npt.NDArray[np.bool_], what: str) -> Breach | None:
    """The first index at which a condition fails."""
    return None if met.all() else Breach(operands, int(met.argmin()), what, "not so")


def mismatch(operands: tuple[Operand, ...], wanted: object, found: object) -> Breach | None:
    return None if wanted == found else Breach(operands, None, str(wanted), str(found))


def needless_refusal(operands: tuple[Operand, ...], error: LayoutError) -> Breach:
    """A refusal although a result exists."""
    return Breach(operands, None, "a layout, which exists", str(error))


def unfounded_result(operands: tuple[Operand, ...], result: object) -> Breach:
    """A result although none exists."""
    return Breach(operands, None, "a refusal, since there is no such layout", str(result))


def shape_mismatch(operands: tuple[Operand, ...], coarse: IntTuple, layout: Layout) -> Breach | None:
    """A breach unless the layout's shape refines `coarse` leaf by leaf, with positive extents."""
    if min(flatten(layout.shape), default=1) < 1 or not _refines(coarse, layout.shape):
        return Breach(operands, None, f"a shape that refines {coarse}", str(layout))
    return None


def _refines(coarse: IntTuple, fine: IntTuple) -> bool:
    if isinstance(coarse, tuple):
        return isinstance(fine, tuple) and len(coarse) == len(fine) and all(map(_refines, coarse, fine))
    return coarse == np.prod(flatten(fine), dtype=object)
