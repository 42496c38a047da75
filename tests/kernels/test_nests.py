"""Templates of windows, reductions, scans: proved by the nest's claim, right when executed, and twins not proved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from attrs import evolve

from argus.core.index import Const
from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.kernels.nests import long_rows, made, reductions, scans, windows
from argus.kernels.nests.reductions import Reductions
from argus.kernels.nests.scans import Scans
from argus.kernels.nests.windows import Windows
from argus.kernels.schedules.rows import Rows
from argus.language import Template
from argus.nests.affine import computed
from argus.nests.canonical import Canonical, canonical
from argus.nests.rewrite import reductions as reductions_of
from argus.runtime.cpu.validate import validate
from argus.testing import nest_cases as cases
from argus.testing.nest_cases import Case, Window
from argus.verifier.kernel import verify

NO_RUNS = evolve(Budget(), runs=0)
SQUARE, FLAT = Window(3, padding=1), Window(1)
POOLS = {
    "max 1": cases.pool("max", Window(8, 1, 4, 3)),
    "max 2": cases.pool("max", Window(4, 1, 1), Window(4, 1, 1)),
    "max 3": cases.pool("max", *[Window(3, 2, 1, 3)] * 3),
    "mean 1": cases.pool("add", Window(8, 1, 4)),
    "mean 2": cases.pool("add", Window(5, 5), Window(5, 5)),
    "mean 3": cases.pool("add", *[Window(3, 2, 1)] * 3),
    "depthwise": cases.depthwise(SQUARE, SQUARE, bias=True),
    "depthwise 3x1": cases.depthwise(Window(3), FLAT),
    "depthwise 3x7, strided": cases.depthwise(Window(3, 2), Window(7, 1, 2, 2)),
}
COLUMNS = {
    "sum": cases.reduced("add", columns=True),
    "mean": cases.averaged(columns=True),
    "max": cases.reduced("max", columns=True),
    "argmax": cases.reduced("argmax", columns=True),
    "softmax": cases.along(cases.softmax, columns=True),
    "rms norm": cases.along(cases.rms_norm, columns=True),
}
ROWS = {
    "min": cases.reduced("min", columns=False),
    "product": cases.reduced("mul", columns=False),
    "argmin": cases.reduced("argmin", columns=False),
    "softmax": cases.along(cases.softmax, columns=False),
    "log softmax": cases.along(cases.log_softmax, columns=False),
    "layer norm": cases.along(cases.layer_norm, columns=False, weights=True),
    "l1 norm": cases.along(cases.l1_norm, columns=False),
    "l2 norm": cases.along(cases.l2_norm, columns=False),
    "squared error": cases.loss(cases.squared_error),
    "smooth l1": cases.loss(cases.smooth_l1),
    "hinge": cases.loss(cases.hinge),
}
LONG_ROWS = {name: ROWS[name] for name in ("softmax", "log softmax", "layer norm", "l1 norm", "l2 norm")}
SCANS = {
    "sum": cases.scan("add"),
    "product": cases.scan("mul"),
    "reversed": cases.scan("add", backwards=True),
    "exclusive": cases.scan("add", exclusive=True),
    "masked": cases.scan("add", masked=True),
}
COLUMN_CONFIGS = {
    "any": Reductions(threads=128, kept=32, values=2, columns=True),
    "vectors": Reductions(threads=128, kept=32, vector=4, values=1, columns=True),
    "held": Reductions(threads=64, kept=32, values=8, columns=True, held=True),
}
ROW_CONFIGS = {
    "block": Reductions(threads=64, vector=4, values=1),
    "block, held": Reductions(threads=64, vector=4, values=2, held=True),
    "lanes": Reductions(threads=64, kept=8, values=2),
    "warps, held": Reductions(threads=64, kept=2, values=4, held=True),
}
ROWS_OF_CLUSTERS = {
    "two blocks": Rows(threads=64, vector=1, steps=4, rows=1, staged=True, blocks=2, together=2),
    "a block": Rows(threads=64, vector=4, steps=2, rows=1, staged=True),
}
WHOLE_ROWS = {"two blocks": Rows(threads=64, vector=4, steps=4, rows=1, staged=True, blocks=2, whole=True, together=2)}
SCAN_CONFIGS = {"elements": Scans(threads=64, values=2), "vectors": Scans(threads=64, vector=4, values=1)}
FAMILIES: Mapping[str, tuple[Mapping[str, Case], Mapping[str, Any], Any, Mapping[str, int]]] = {
    "windows": (POOLS, {"rows": Windows(64, 32, 2), "row": Windows(64, 64)}, windows.windows, {"N": 1, "C": 2}),
    "columns": (COLUMNS, COLUMN_CONFIGS, reductions.reduced, {"A": 2, "J": 13, "B": 40}),
    "rows": (ROWS, ROW_CONFIGS, reductions.reduced, {"A": 3, "J": 44}),
    "long rows": (LONG_ROWS, ROWS_OF_CLUSTERS, long_rows.long_rows, {"A": 3, "J": 300}),
    "whole rows": (LONG_ROWS, WHOLE_ROWS, long_rows.long_rows, {"A": 2, "J": 2048}),
    "scans": (SCANS, SCAN_CONFIGS, scans.scans, {"A": 2, "J": 300}),
    "columns scanned": (
        {"sum": cases.column_scan("add")},
        {"columns": Scans(threads=32, values=4, columns=True)},
        scans.scans,
        {"A": 2, "J": 9, "B": 40},
    ),
}
SPATIAL = {"D": 9, "H": 17, "W": 37}


def form_of(case: Case) -> Canonical:
    windowed = any(isinstance(axis.extent, Const) for each in reductions_of(case.nests[0].body) for axis in each.axes)
    return canonical(case.nests, {each.name: each for each in case.inputs}, most_axes=5, join=not windowed)


def template(case: Case, schedule: Callable[..., None], config: Any) -> Template:  # noqa: ANN401 reason: of any family
    return made.template(form_of(case), schedule, config, "made")


def sizes_of(case: Case, given: Mapping[str, int]) -> dict[str, int]:
    """The sizes of the kernel, by those of the graph."""
    form = form_of(case)
    return {name: computed(extent, given) for name, extent in form.sizes.items()}


def serves(family: str, name: str, config: str) -> bool:
    """Whether a configuration is for the case: vectors do not begin one element earlier, or at the end."""
    return not (family == "scans" and name in ("exclusive", "reversed") and config == "vectors")


ALL = [
    pytest.param(family, name, config, id=f"{family}-{name}-{config}")
    for family, (known, configs, _, _) in FAMILIES.items()
    for name in known
    for config in configs
    if serves(family, name, config)
]


@pytest.mark.share(320, among="nests")
@pytest.mark.parametrize(("family", "name", "config"), ALL)
def test_every_case_is_proved(family: str, name: str, config: str) -> None:
    known, configs, schedule, _ = FAMILIES[family]
    verdict = verify(template(known[name], schedule, configs[config]), solver="z3", budget=NO_RUNS).verdict
    assert isinstance(verdict, Proved), verdict
    assert {"I4", "I39"} <= dict(verdict.coverage).keys()


@pytest.mark.nightly
@pytest.mark.parametrize(("family", "name", "config"), ALL)
def test_cvc5_proves_them_too(family: str, name: str, config: str) -> None:
    known, configs, schedule, _ = FAMILIES[family]
    verdict = verify(template(known[name], schedule, configs[config]), solver="cvc5", budget=NO_RUNS).verdict
    assert isinstance(verdict, Proved), verdict


@pytest.mark.share(320, among="nests")
@pytest.mark.parametrize(("family", "name", "config"), ALL)
def test_the_text_computes_the_claim(family: str, name: str, config: str) -> None:
    known, configs, schedule, given = FAMILIES[family]
    case = known[name]
    kernel = template(case, schedule, configs[config]).trace()
    found = validate(kernel, [sizes_of(case, {**SPATIAL, **given})], seeds=1)
    assert all(each.right for each in found.trials), found
    assert any(each.elements for each in found.trials)


def as_told(claimed: Case, done: Case, family: str, config: str) -> Template:
    """A kernel that claims one case, and whose schedule computes another one of the same tensors."""
    _, configs, schedule, _ = FAMILIES[family]
    other = form_of(done)

    def unlike(_: Canonical, *rest: object) -> None:
        schedule(other, *rest)

    return template(claimed, unlike, configs[config])


def mean_of(window: Window) -> Case:
    return cases.pool("add", window, window)


WRONG = {
    "windows that begin one element earlier": ("windows", "rows", mean_of(Window(3, 2, 1)), mean_of(Window(3, 2, 2))),
    "windows with another dilation": ("windows", "row", mean_of(Window(3, 1, 2, 2)), mean_of(Window(3, 1, 2, 1))),
    "the minimum for the maximum": (
        "columns",
        "any",
        cases.reduced("max", columns=True),
        cases.reduced("min", columns=True),
    ),
    "the last for the first place": (
        "rows",
        "lanes",
        cases.reduced("argmin", columns=False),
        cases.reduced("argmax", columns=False),
    ),
    "the sum for the mean": ("rows", "block", cases.averaged(columns=False), cases.reduced("add", columns=False)),
    "squares for distances": ("rows", "block", cases.loss(cases.smooth_l1), cases.loss(cases.squared_error)),
    "the sum of squares for that of distances": (
        "long rows",
        "two blocks",
        cases.along(cases.l1_norm, columns=False),
        cases.along(cases.l2_norm, columns=False),
    ),
    "an inclusive for an exclusive scan": ("scans", "elements", cases.scan("add", exclusive=True), cases.scan("add")),
    "a scan from the start for one from the end": (
        "scans",
        "elements",
        cases.scan("add", backwards=True),
        cases.scan("add"),
    ),
}


@pytest.mark.share(32, among="nests")
@pytest.mark.parametrize("what", WRONG)
def test_a_kernel_of_another_nest_is_not_proved(what: str) -> None:
    family, config, claimed, done = WRONG[what]
    verdict = verify(as_told(claimed, done, family, config), solver="z3").verdict
    assert not isinstance(verdict, Proved), verdict
