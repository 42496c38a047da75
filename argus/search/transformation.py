"""Transformations: a technique as a pure function from a design to designs, or from a kernel to kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import attrs
from attrs import evolve, frozen

from argus.core.ir import Kernel
from argus.kernels.gemm import Config

Design = Config
"""A typed configuration of a kernel family."""


def _no_designs(_design: Design) -> tuple[Design, ...]:
    return ()


def _no_design(_design: Design) -> Design | None:
    return None


def _no_kernels(_kernel: Kernel) -> tuple[Kernel, ...]:
    return ()


@frozen
class Transformation:
    """The implementation of a technique on designs, on the IR, or on both.

    apply: all designs with the technique, empty if it does not apply. undo: the design without the technique and
    otherwise equal; None if the design does not have it. rewrite: equivalent kernels with the technique, empty if it
    does not apply. The results are neither proved nor guaranteed to fit the machine.
    """

    apply: Callable[[Design], tuple[Design, ...]] = _no_designs
    undo: Callable[[Design], Design | None] = _no_design
    rewrite: Callable[[Kernel], tuple[Kernel, ...]] = _no_kernels

    @property
    def rewrites(self) -> bool:
        """Whether it also transforms the IR."""
        return self.rewrite is not _no_kernels


def combine(*parts: Transformation) -> Transformation:
    """Combine the implementations of one technique for several kinds of designs."""

    def apply(design: Design) -> tuple[Design, ...]:
        return tuple(made for part in parts for made in part.apply(design))

    def undo(design: Design) -> Design | None:
        return next((found for part in parts if (found := part.undo(design)) is not None), None)

    def rewrite(kernel: Kernel) -> tuple[Kernel, ...]:
        return tuple(made for part in parts for made in part.rewrite(kernel))

    rewriting = any(part.rewrites for part in parts)
    return Transformation(apply, undo, rewrite if rewriting else _no_kernels)


When = Callable[[Any], bool]
"""Whether a technique is applicable to a design of its kind."""
Fit = Callable[[Any], Any]
"""Adapts a design to its machine's limits; None if that is impossible."""


def always(_design: object) -> bool:
    return True


def identity(design: Any) -> Any:  # noqa: ANN401 reason: a design of any kind
    return design


def set_field(
    kind: type[Any], field: str, *values: object, when: When = always, fit: Fit = identity, low: object = None
) -> Transformation:
    """A technique that sets a field to one of `values`; `undo` resets it to its default, or to `low` if given."""
    off = next(each.default for each in attrs.fields(kind) if each.name == field) if low is None else low

    def apply(design: Design) -> tuple[Design, ...]:
        if not isinstance(design, kind) or getattr(design, field) != off or not when(design):
            return ()
        return _valid_designs(design, field, values, fit)

    def undo(design: Design) -> Design | None:
        if not isinstance(design, kind) or getattr(design, field) not in values:
            return None
        without = _with(design, field, off)
        return without if when(without) else None

    return Transformation(apply, undo)


def increase_field(
    kind: type[Any], field: str, *rungs: int, when: When = always, fit: Fit = identity
) -> Transformation:
    """A technique that increases a numeric field: to each larger rung; `undo` goes down by one rung."""

    def apply(design: Design) -> tuple[Design, ...]:
        if not isinstance(design, kind) or not when(design):
            return ()
        return _valid_designs(design, field, tuple(rung for rung in rungs if rung > getattr(design, field)), fit)

    def undo(design: Design) -> Design | None:
        if not isinstance(design, kind):
            return None
        lower = [rung for rung in rungs if rung < getattr(design, field)]
        without = fit(_with(design, field, max(lower))) if lower else None
        return without if without is not None and when(without) else None

    return Transformation(apply, undo)


def _with(design: Design, field: str, value: object) -> Design:
    return cast("Design", evolve(cast("Any", design), **{field: value}))


def _valid_designs(design: Design, field: str, values: tuple[object, ...], fit: Fit) -> tuple[Design, ...]:
    made = (fit(_with(design, field, value)) for value in values)
    meant = (each for each in made if each is not None and getattr(each, field) in values)
    return tuple(dict.fromkeys(each for each in meant if each != design))
