"""Serialisation of designs: round-trips for each value of each knob."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress

import pytest
from attrs import fields

from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.core.ir.pretty import pretty
from argus.core.serde import read, write
from argus.kernels.gemm import Config
from argus.search.problems.problem import Gemm
from argus.search.tuning.candidates import design_space

SIZES = (4096, 4096, 4096)


def knobs(config: Config) -> set[tuple[str, str, str]]:
    """(kind, knob, value) of a design."""
    return {(type(config).__name__, each.name, repr(getattr(config, each.name))) for each in fields(type(config))}


def covering(problem: Gemm) -> Iterator[Kernel]:
    """Designs that cover all knob values with a well-formed design."""
    seen: set[tuple[str, str, str]] = set()
    for name, config in design_space(problem.target).items():
        if knobs(config) <= seen:
            continue
        with suppress(ArgusError):
            yield problem.kernel(name)
            seen |= knobs(config)


@pytest.mark.share(8)
@pytest.mark.parametrize("target", ["gfx942", "sm_90a"])
def test_a_design_round_trips_for_each_knob_value(target: str) -> None:
    kernels = list(covering(Gemm(*SIZES, "bf16", target)))
    for kernel in kernels:
        (made,) = read(json.loads(json.dumps(write([kernel]))))
        assert isinstance(made, Kernel)
        assert pretty(made, spans=True) == pretty(kernel, spans=True)

    assert len(kernels) > 20
