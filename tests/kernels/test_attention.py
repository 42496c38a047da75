"""The attention family on Hopper: proved, interpreted as emitted; twins of one edit are refuted, or not proved."""

from __future__ import annotations

from types import ModuleType

import pytest
from attrs import evolve

from argus.core.ir import Assert, Equals, Stmt
from argus.core.query import Budget
from argus.core.verdict import Proved, Refuted, Unknown
from argus.kernels.attention import CONFIGS
from argus.kernels.schedules import attention as problem
from argus.kernels.schedules import attention_hopper as schedule
from argus.language import sm_90a
from argus.ops.attention import FAMILIES as SHIPPED
from argus.runtime.cpu.validate import validate
from argus.verifier.kernel import verify
from tests.kernels.twins import twin

FAMILIES = {
    f"{width}{'' if dtype == 'torch.bfloat16' else ' f16'}": family
    for dtype, families in SHIPPED.items()
    for width, family in families.items()
}
BOTH = [(width, config) for width in FAMILIES for config in CONFIGS[int(width.split()[0])]]
ALL = [(*each, "z3") for each in BOTH] + [(*each, "cvc5") for each in BOTH if each[1] == "full"]
"""cvc5 alone gives up on bounds of the causal ones."""


LONG = [pytest.param(*each, marks=[] if each == ("64", "full", "z3") else pytest.mark.nightly) for each in ALL]


@pytest.mark.parametrize(("width", "config", "solver"), LONG)
def test_every_configuration_is_proved(width: str, config: str, solver: str) -> None:
    verdict = verify(FAMILIES[width], config=config, solver=solver).verdict

    assert isinstance(verdict, Proved), verdict
    assert {"I4", "I39"} <= dict(verdict.coverage).keys()


SIZES = (
    {"B": 1, "H": 1, "S": 1, "G": 1, "T": 1},
    {"B": 1, "H": 2, "S": 65, "G": 1, "T": 300},
    {"B": 2, "H": 2, "S": 130, "G": 2, "T": 140},
)
SIZES_WITHOUT_KEYS = ({"B": 1, "H": 2, "S": 150, "G": 1, "T": 20},)
"""The first queries see no key, all of the first warpgroup among them."""


@pytest.mark.nightly
@pytest.mark.parametrize(("width", "config"), [each for each in BOTH if each[0] not in ("128 f16", "256 f16")])
def test_the_text_agrees_with_the_interpreter(width: str, config: str) -> None:
    few = evolve(FAMILIES[width], target=evolve(sm_90a, processors=2))  # each block takes several tiles
    more = SIZES_WITHOUT_KEYS if FAMILIES[width].configs[config].masked_rows else ()
    for template, sizes in ((FAMILIES[width], (*SIZES[:2], *more)), (few, SIZES[2:])):
        found = validate(template.trace(config), sizes, seeds=1)
        assert all(each.right and each.elements for each in found.trials), found


EDITS: dict[str, tuple[str, ModuleType, tuple[str, str]]] = {
    "mask off by one": ("causal", problem, ("(t <= last) & below", "(t <= last + 1) & below")),
    "mask without the end": ("full", problem, ("below, last = t < self.keys", "below, last = t >= 0")),
    "a block too few is masked": (
        "causal",
        problem,
        ("self.visible(first) // keys", "ceil_div(self.visible(first), keys)"),
    ),
    "another head": ("full", problem, ("self.K[b, g]", "self.K[b, h % self.K.shape[1]]")),
    "values of another head": ("full", problem, ("self.V[b, g]", "self.V[b, 0 * h]")),
    "no rescale": ("full", schedule, ("self.out[:] = self.out * rescale", "self.out[:] = self.out * 1.0")),
    "sum without its rescale": ("full", problem, ("rows.sums * rescale + weights", "rows.sums + weights")),
    "one block less": ("full", schedule, ("else end - 1) - 1, -1", "else end - 1) - 1, 0")),
    "early release": (
        "full",
        schedule,
        (
            "        wgmma.wait(0)\n        self.rings.v.release()\n",
            "        self.rings.v.release()\n        wgmma.wait(0)\n",
        ),
    ),
    "twice the values": ("full", schedule, ("self.out * (1.0 / where", "self.out * (2.0 / where")),
    "scale of the maximum left out": ("full", problem, ("fma(x, c, guard * -c)", "fma(x, c, -guard)")),
}
FOUND = {
    "mask off by one": {"I3", "I25"},
    "mask without the end": {"I3", "I25"},
    "a block too few is masked": {"I3", "I25"},
    "another head": {"I1", "I2", "I4", "I26"},
    "values of another head": {"I1", "I2", "I4", "I26"},
    "no rescale": {"I23", "I39"},
    "sum without its rescale": {"I23", "I39"},
    "one block less": {"I3", "I25"},
    "early release": {"I10"},
    "twice the values": {"I39"},
    "scale of the maximum left out": {"I39"},
}
"""The invariants of which one refutes a twin."""
VALUES = ("no rescale", "sum without its rescale", "twice the values", "scale of the maximum left out")
"""Twins that compute wrong values of the right elements."""


@pytest.mark.nightly
@pytest.mark.parametrize("solver", ["z3", "cvc5"])
@pytest.mark.parametrize("name", FOUND)
def test_a_twin_of_one_edit_is_refuted(name: str, solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config, module, edit = EDITS[name]
    verdict = verify(twin(FAMILIES["64"], module, edit, monkeypatch), config=config, solver=solver).verdict

    assert isinstance(verdict, Refuted), verdict
    assert verdict.counterexample.code in FOUND[name]


@pytest.mark.share(4)
@pytest.mark.parametrize("name", VALUES)
def test_a_twin_of_wrong_values_is_not_proved(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config, module, edit = EDITS[name]
    verdict = verify(
        twin(FAMILIES["64"], module, edit, monkeypatch), config=config, solver="z3", budget=evolve(Budget(), runs=0)
    ).verdict

    assert isinstance(verdict, Unknown), verdict


def test_without_formulas_twice_the_values_are_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """What tags say of each output is met: each element of a row is counted once."""
    config, module, edit = EDITS["twice the values"]
    claimed = twin(FAMILIES["64"], module, edit, monkeypatch).trace(config)
    tags = evolve(claimed, epilogue=tuple(each for each in claimed.epilogue if not _is_formula(each)))

    assert isinstance(verify(tags, solver="z3").verdict, Proved)


def _is_formula(stmt: Stmt) -> bool:
    return isinstance(stmt, Assert) and isinstance(stmt.claim, Equals)
