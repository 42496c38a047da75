"""The templates that nests are tried with, in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

from attrs import frozen

from argus.kernels.config_names import name_of
from argus.kernels.nests import places, reductions, scans, windows
from argus.kernels.nests.fragments import STORED
from argus.kernels.nests.made import Schedule, template
from argus.kernels.nests.pointwise import config_for, pointwise
from argus.nests.affine import computed
from argus.nests.canonical import MOST_AXES, Canonical
from argus.nests.text import canonical_text
from argus.ops.call_path import Candidate, Traced

Plan = Callable[[Canonical, Mapping[str, int]], Any]
"""The configuration of a template for a canonical form at some sizes; None where the template is for others."""


@frozen
class Family:
    """A template. most_axes: of the domains that it takes. join: axes that all reads run through become one.

    shares: it computes a reduction once for all elements of the output that it is for.
    """

    name: str
    plan: Plan
    schedule: Schedule
    most_axes: int = MOST_AXES
    join: bool = True
    shares: bool = False


def _of_pointwise(form: Canonical, sizes: Mapping[str, int]) -> Any:  # noqa: ANN401 reason: its own type
    return config_for(form, int(computed(form.nests[0].domain[-1].extent, sizes)))


FAMILIES: tuple[Family, ...] = (
    Family("pointwise", _of_pointwise, pointwise),
    Family("windows", windows.config_for, windows.windows, most_axes=5, join=False),
    Family("scans", scans.config_for, scans.scans),
    Family("places", places.config_for, places.places),
    Family("reductions", reductions.config_for, reductions.reduced, shares=True),
)


def candidates(family: Family, form: Canonical, sizes: Mapping[str, int]) -> tuple[Candidate, ...]:
    """The kernels to try at these sizes; none where the template is for other nests."""
    if any(each.type.dtype not in STORED for each in form.parameters):
        return ()
    config = family.plan(form, sizes)
    return () if config is None else (candidate(family, form, config),)


def candidate(family: Family, form: Canonical, config: Any) -> Candidate:  # noqa: ANN401 reason: each family's own
    """The kernel of a form by a family, on demand."""
    digest = sha256(canonical_text(form).encode()).hexdigest()[:10]
    name = f"{family.name}_{digest}"

    def traced() -> Traced:
        return template(form, family.schedule, config, name).trace(), family.schedule.__module__

    return Candidate(name, name_of(config), traced)
