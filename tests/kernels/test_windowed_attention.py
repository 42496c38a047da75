"""Windowed and capped attention: proved for all windows, its text computes what the interpreter does, twins are not."""

from __future__ import annotations

from types import ModuleType

import pytest
from attrs import evolve

from argus.core.query import Budget
from argus.core.verdict import Proved, Refuted, Unknown
from argus.kernels.schedules import attention as problem
from argus.kernels.schedules import attention_hopper as schedule
from argus.kernels.windowed_attention import CONFIGS, choose
from argus.language import sm_90a
from argus.ops.attention import WINDOWED
from argus.runtime.cpu.validate import validate
from argus.verifier.kernel import verify
from tests.kernels.twins import twin

FAMILIES = {family.name: family for families in WINDOWED.values() for family in families.values()}
ALL = [(name, config) for name in FAMILIES for config in CONFIGS[64]]
LONG = [pytest.param(*each, marks=[] if each == ALL[0] else pytest.mark.nightly) for each in ALL]


@pytest.mark.parametrize(("name", "config"), LONG)
def test_every_configuration_is_proved(name: str, config: str) -> None:
    verdict = verify(FAMILIES[name], config=config, solver="z3").verdict

    assert isinstance(verdict, Proved), verdict
    assert {"I1", "I3", "I4", "I23", "I25"} <= dict(verdict.coverage).keys()
    assert {"left <= 268435455", "right <= 268435455"} <= set(verdict.assumptions)


def test_a_configuration_is_chosen_by_what_it_computes() -> None:
    for width, configs in CONFIGS.items():
        for wide in (False, True):
            for capped in (False, True):
                chosen = configs[choose(width, wide=wide, capped=capped)]
                assert (chosen.capped, chosen.zigzag) == (capped, wide)


SIZES = (
    {"B": 1, "H": 2, "S": 150, "G": 1, "T": 300, "left": 40, "right": 3},
    {"B": 1, "H": 1, "S": 130, "G": 1, "T": 20, "left": 7, "right": 0},
    {"B": 1, "H": 1, "S": 1, "G": 1, "T": 1, "left": 0, "right": 0},
)
"""Blocks that are left out at both ends; queries without keys."""


@pytest.mark.share(6)
@pytest.mark.parametrize("config", ["window", "capped_wide"])
@pytest.mark.parametrize("name", ["windowed_64", "windowed_128", "windowed_64_f16"])
def test_the_text_agrees_with_the_interpreter(name: str, config: str) -> None:
    few = evolve(FAMILIES[name], target=evolve(sm_90a, processors=2))  # each block takes several tiles
    found = validate(few.trace(config), SIZES, seeds=1)
    assert all(each.right and each.elements for each in found.trials), found


EDITS: dict[str, tuple[str, ModuleType, tuple[str, str], set[str]]] = {
    "a key more to the left": (
        "window",
        problem,
        ("seen & (t >= q + self.offset - self.window[0])", "seen & (t >= q + self.offset - self.window[0] - 1)"),
        {"I3", "I25"},
    ),
    "a key more to the right": (
        "window",
        problem,
        ("seen = below if last is None else (t <= last)", "seen = below if last is None else (t <= last + 1)"),
        {"I3", "I25"},
    ),
    "keys from the first block": (
        "window",
        schedule,
        ("copy(head.K.tile((cfg.bn, width), (n, 0))", "copy(head.K.tile((cfg.bn, width), (n - start, 0))"),
        {"I1", "I2", "I3", "I24", "I25", "I26"},
    ),
    "values from the first block": (
        "capped",
        schedule,
        ("copy(head.V.tile((cfg.bn, width), (n, 0))", "copy(head.V.tile((cfg.bn, width), (n - start, 0))"),
        {"I1", "I2", "I3", "I24", "I25", "I26"},
    ),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", EDITS)
def test_a_twin_of_one_edit_is_refuted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config, module, edit, found = EDITS[name]
    verdict = verify(twin(FAMILIES["windowed_64"], module, edit, monkeypatch), config=config, solver="z3").verdict

    assert isinstance(verdict, Refuted), verdict
    assert verdict.counterexample.code in found


NOT_PROVED: dict[str, tuple[str, ModuleType, tuple[str, str]]] = {
    "a maximum of scores without their cap": (
        "capped",
        schedule,
        ("now = maximum(self.high, x.max(1))", "now = maximum(self.high, self.scores.max(1))"),
    ),
    "blocks from the last row's first key": (
        "window",
        problem,
        ("self.first(first) // keys", "self.first(first + queries - 1) // keys"),
    ),
}
"""Without a run that shows the fault: no claim without a formula says which reference the weights have, and no run that
is tried has a window between blocks of 128 keys."""


@pytest.mark.nightly
@pytest.mark.parametrize("name", NOT_PROVED)
def test_another_twin_is_not_proved(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config, module, edit = NOT_PROVED[name]
    made = twin(FAMILIES["windowed_64"], module, edit, monkeypatch)
    verdict = verify(made, config=config, solver="z3", budget=evolve(Budget(), runs=0)).verdict
    assert isinstance(verdict, Unknown), verdict
