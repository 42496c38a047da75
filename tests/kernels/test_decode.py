"""Decode attention on paged keys and values: proved, its text computes what the interpreter does, twins are refuted."""

from __future__ import annotations

import inspect
from importlib import import_module
from types import ModuleType

import pytest
from attrs import evolve

from argus.core.query import Budget
from argus.core.verdict import Proved, Verdict
from argus.kernels.decode import CONFIGS, decode_bf16
from argus.kernels.schedules import decode as schedule
from argus.verifier.program import verify_program

NO_RUNS = evolve(Budget(), runs=0)


def verdict(config: str, solver: str = "z3") -> Verdict:
    return verify_program(decode_bf16, config=config, solver=solver, budget=NO_RUNS).verdict


@pytest.mark.parametrize(
    "config",
    [each if each == "page_16_blocks_4" else pytest.param(each, marks=pytest.mark.nightly) for each in CONFIGS],
)
def test_every_configuration_is_proved(config: str) -> None:
    found = verdict(config)

    assert isinstance(found, Proved), found
    assert {"I4", "I5", "I34", "I37", "I39"} <= dict(found.coverage).keys()
    assert [line.split("(")[1].split(",")[0] for line in found.results if line.startswith("assert_equals")] == [
        "O",
        "LSE",
    ]


TWINS = {
    "minimum(first // cfg.page, N - 1)": "minimum(first // cfg.page + 1, N - 1)",
    "held.tile((fetched, width), (n, 0))": "held.tile((fetched, width), (bn // fetched - 1 - n, 0))",
    "i * bn + j < seen(": "i * bn + j <= seen(",
    "out[:] = out * rescale\n": "\n",
    "low, high = z * cfg.blocks,": "low, high = z * cfg.blocks + minimum(z, 1),",
    "count = ceil_div(ceil_div(": "count = ceil_div((lambda n, d: n // d)(",
    "out[:] = out + w * load(values": "out[:] = out + load(values",
    "(slot.v, cache.V)": "(slot.v, cache.K)",
}


@pytest.mark.nightly
@pytest.mark.parametrize("twin", TWINS)
def test_twins_of_one_edit_are_not_proved(twin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = inspect.getsource(schedule)
    assert source.count(twin) == 1
    edited = ModuleType("edited")
    edited.__dict__.update(schedule.__dict__)
    exec(compile(source.replace(twin, TWINS[twin]), schedule.__file__, "exec"), edited.__dict__)  # noqa: S102 reason: one edit
    kernels = import_module("argus.kernels.decode")
    for name in ("decode_parts", "decode_merge"):
        monkeypatch.setattr(kernels, name, edited.__dict__[name])

    assert not isinstance(verdict("page_16_blocks_4"), Proved)
