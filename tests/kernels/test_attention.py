"""The attention family on Hopper: proved, interpreted as emitted; twins of one edit are refuted, or not proved."""

from __future__ import annotations

import pytest
from attrs import evolve

from argus.core.ir import Assert, Equals, Kernel, Stmt
from argus.core.query import Budget
from argus.core.verdict import Proved, Refuted, Unknown
from argus.kernels.attention import CONFIGS
from argus.language import Template, sm_90a
from argus.ops.attention import FAMILIES as SHIPPED
from argus.runtime.cpu.validate import validate
from argus.verifier.kernel import verify
from tests.kernels.attention_twins import FORWARD, Twin
from tests.kernels.twins import twin

NO_RUNS = evolve(Budget(), runs=0)
FAMILIES = {
    f"{width}{'' if dtype == 'torch.bfloat16' else ' f16'}": family
    for dtype, families in SHIPPED.items()
    for width, family in families.items()
}
BOTH = [(width, config) for width in FAMILIES for config in CONFIGS[int(width.split()[0])]]
ALL = [(*each, "z3") for each in BOTH] + [(*each, "cvc5") for each in BOTH if each[1] == "full"]
"""cvc5 alone gives up on bounds of the causal ones."""


LONG = [pytest.param(*each, marks=[] if each == ("64", "full", "z3") else pytest.mark.nightly) for each in ALL]


@pytest.mark.share(12, among="attention and decoding")
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


TWINS = {name: each for name, each in FORWARD.items() if isinstance(each.kernel, Template)}
REFUTED = [
    (name, solver)
    for name, each in TWINS.items()
    for solver in ("z3", "cvc5")
    if each.found and (solver == "z3" or each.config == "full")
]
VALUES = {
    *("no rescale", "sum without its rescale", "rescaled the other way", "rescaled without the scale"),
    *("scale of the maximum left out", "scale squared", "maximum not kept", "masked scores of 0"),
    *("log-sum-exp without the maximum", "log-sum-exp in base 2", "twice the values"),
}
"""Twins that compute wrong values of the right elements."""
WINDOWED = "capped log-sum-exp in base 2"
"""One of these in a sliding window."""


def traced(of: Twin) -> Kernel:
    found = twin(of.kernel, of.config, of.module, of.edit)
    assert isinstance(found, Kernel)
    return found


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "solver"), REFUTED)
def test_a_twin_of_one_edit_is_refuted(name: str, solver: str) -> None:
    verdict = verify(traced(TWINS[name]), solver=solver).verdict

    assert isinstance(verdict, Refuted), verdict
    assert verdict.counterexample.code in TWINS[name].found


@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name, each in TWINS.items() if not each.found])
def test_another_twin_is_not_proved(name: str) -> None:
    assert not isinstance(verify(traced(TWINS[name]), solver="z3", budget=NO_RUNS).verdict, Proved)


@pytest.mark.share(44)
@pytest.mark.parametrize("name", sorted(VALUES))
def test_a_twin_of_wrong_values_is_not_proved(name: str) -> None:
    verdict = verify(traced(TWINS[name]), solver="z3", budget=NO_RUNS).verdict

    assert isinstance(verdict, Unknown), verdict


@pytest.mark.share(12, among="attention and decoding")
@pytest.mark.parametrize("name", ["twice the values", pytest.param(WINDOWED, marks=pytest.mark.nightly)])
def test_without_formulas_a_twin_of_wrong_values_is_proved(name: str) -> None:
    """What tags say of each output is met: each element of a row is counted once."""
    claimed = traced(TWINS[name])
    tags = evolve(claimed, epilogue=tuple(each for each in claimed.epilogue if not _is_formula(each)))

    assert isinstance(verify(tags, solver="z3").verdict, Proved)


def _is_formula(stmt: Stmt) -> bool:
    return isinstance(stmt, Assert) and isinstance(stmt.claim, Equals)
