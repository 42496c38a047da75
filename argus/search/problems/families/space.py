"""What a family gives the search: designs that are traced on demand, a float64 reference, sizes and work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, cast

import attrs
from attrs import field, frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.policy.bounds import Work
from argus.runtime.sandbox.user_reference import Oracle
from argus.search.problems.input_rules import PLAIN, InputRules
from argus.search.problems.traced import Traced

Knob = int | bool | str
Knobs = tuple[tuple[str, Knob], ...]


@frozen
class FamilyDesign:
    """A design. knobs: its parameters, the first one the kind of schedule. numbers: further features of how it fits
    the problem, by name. config: of its schedule. trace: the kernel, or the program of several launches.

    sizes: of its kernels alone. inputs: rules for inputs that its kernels alone need. Both are found by the kernel's
    name, which is then the design's.
    """

    name: str
    knobs: Knobs
    trace: Callable[[], Traced] = field(eq=False, repr=False)
    numbers: Mapping[str, float] = field(factory=dict[str, float], eq=False)
    config: object = field(default=None, eq=False, repr=False)
    sizes: Mapping[str, int] = field(factory=dict[str, int], eq=False)
    inputs: InputRules | None = field(default=None, eq=False, repr=False)


@frozen(eq=False)
class FamilySpace:
    """The problem of one name. sizes: of its kernels, by name. designs: by name, the usual one among them.

    reference: float64 outputs of float64 inputs, by the names of the kernel's parameters. inputs: rules for those that
    kernels are run on. notes: caveats. told: what is computed, as text. checked: whether all
    designs are known to take the sizes; otherwise each is traced to find out. usual: the design that is used without a
    search, and why. experience: the file of kb/experience/ with fitted priors. size: the covariate of those, such as
    the work of a processor. place: coordinates, by whose distance recorded problems count.
    """

    sizes: Mapping[str, int]
    designs: Mapping[str, FamilyDesign]
    reference: Oracle
    work: Work
    usual: str
    why: str
    experience: str
    size: float
    place: tuple[float, ...]
    inputs: InputRules = PLAIN
    notes: tuple[str, ...] = ()
    told: str = ""
    checked: bool = True


def knobs_of(config: object) -> Knobs:
    """All fields of a configuration as (name, value), tuples as text; the first is the kind of schedule."""
    kind = cast("type[Any]", type(config))
    fields = [(each.name, getattr(config, each.name)) for each in attrs.fields(kind)]
    return (("kind", kind.__name__), *((name, plain_knob(value)) for name, value in fields))


def plain_knob(value: object) -> Knob:
    return value if isinstance(value, int) else str(value).strip("(),").replace(", ", "x")


def refuse(message: str, advice: str) -> NoReturn:
    """Raises ArgusError (E903)."""
    raise ArgusError(Diagnostic("E903", "error", message, help=advice))
