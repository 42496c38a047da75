"""The nearest variant that is proved, of kernels that are neither proved nor refuted.

tests/golden/nearest_variants.txt has it for each kernel of tests/corpus/unknown and tests/corpus/nearest, of which the
latter are as users write them. `make golden` rewrites it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from math import inf
from pathlib import Path
from typing import Any, cast

import pytest
from attrs import evolve

import argus
from argus.cli.main import main
from argus.core import algebra
from argus.core.ir import Kernel
from argus.core.proof.variants import Assuming, Change, Claiming
from argus.core.query import Budget
from argus.core.verdict import Proved, ProvedVariant, Refuted, Unknown
from argus.solvers import registry
from argus.verifier import nearest
from argus.verifier.kernel import verify
from argus.verifier.loader import load
from argus.verifier.nearest import nearest_proved, with_nearest
from property_tests.programs import CORPUS
from tests.documents import complaints, document

pytestmark = pytest.mark.share(3, among="verifier: nearest variants")

TABLE = Path(__file__).parents[1] / "golden" / "nearest_variants.txt"
WRITTEN = sorted((CORPUS / "nearest").glob("*.py"))
KERNELS = [*WRITTEN, *sorted((CORPUS / "unknown").glob("*.py"))]
UNTIMED = evolve(Budget.about(10_000), runs=0)
"""No run is made, and no clock ends the search."""
SLOW = {
    "attention_logarithm_in_other_units",
    "attention_logarithm_without_its_maximum",
    "squared_sixty_times",
    "tiles_to_and_fro",
    "waves_wait_apart",
}
Captured = pytest.CaptureFixture[str]


def kernel_of(path: Path) -> Kernel:
    (exported,) = load(str(path))
    return exported.trace()


def found_for(path: Path) -> ProvedVariant | None:
    return nearest_proved(kernel_of(path), registry.get("z3"), evolve(Budget(), total=inf))


def line_of(found: ProvedVariant | None) -> str:
    return "none" if found is None else " and ".join(change.text for change in found.changes)


@cache
def table() -> dict[str, str]:
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    return dict(line.split(": ", 1) for line in lines)


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


@pytest.mark.nightly
def test_the_table_has_every_kernel(update_golden: bool) -> None:
    if update_golden:
        lines = [f"{name_of(path)}: {line_of(found_for(path))}\n" for path in KERNELS]
        TABLE.write_text("".join(lines), encoding="utf-8")
    assert sorted(table()) == sorted(map(name_of, KERNELS))
    assert sum(line != "none" for line in table().values()) > len(KERNELS) // 2


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=pytest.mark.nightly if path.stem in SLOW else pytest.mark.share(32)) for path in KERNELS],
    ids=name_of,
)
def test_the_nearest_variant(path: Path) -> None:
    assert line_of(found_for(path)) == table()[name_of(path)]


@pytest.mark.share(20)
@pytest.mark.parametrize("path", WRITTEN, ids=name_of)
def test_a_kernel_is_proved_once_its_text_is_changed_as_the_variant_says(path: Path, tmp_path: Path) -> None:
    said = table()[name_of(path)]
    assert isinstance(verify(kernel_of(path), solver="z3", budget=UNTIMED).verdict, Unknown)
    if said == "none":
        return
    changed = tmp_path / path.name
    changed.write_text(edited(path.read_text(encoding="utf-8"), said), encoding="utf-8")

    report = verify(kernel_of(changed), solver="z3", budget=UNTIMED)

    assert isinstance(report.verdict, Proved)
    assert report.uncovered == ()


def edited(text: str, said: str) -> str:
    """The text of a kernel after a change, as a user would make it."""
    codes = re.findall("`([^`]*)`", said)
    if said.startswith("copy with"):
        return re.sub(r"(?m)((?:load|copy)\(.*)\)$", rf"\1, {codes[0]})", text)
    text = text.replace("\n\n\n@kernel", "\nfrom argus.language import *\n\n\n@kernel", 1)
    if said.startswith("add `assume"):
        return re.sub(r"(?m)^(    .*block_id\()", rf"    {codes[0]}\n\1", text, count=1)
    for gone in codes[1:]:
        text = re.sub(rf"(?m)^    {re.escape(gone.removesuffix(', ...)'))}.*\n", "", text)
    return f"{text}    {codes[0]}\n"


def test_a_report_names_the_variant_and_its_verdict_stays(capsys: Captured) -> None:
    path = CORPUS / "nearest" / "copied_rows.py"

    report = argus.verify(kernel_of(path), solver="z3", budget=evolve(UNTIMED, runs=1))

    assert isinstance(report.verdict, Unknown)
    assert report.exit_code == 2
    assert report.nearest is not None
    (change,) = report.nearest.changes
    assert (change.kind, change.text) == ("assumption", "add `assume(R <= A)`")
    (diagnostic,) = report.diagnostics
    assert diagnostic.help.startswith("proved if you add `assume(R <= A)` (copied_rows.py:")
    assert (change.at, change.text) in [(label.span, label.text) for label in diagnostic.secondary]
    assert "proved if you   add `assume(R <= A)`" in str(report)
    made = document([report], 2)
    assert complaints(made) == []
    (written,) = cast("list[dict[str, Any]]", made["kernels"])
    assert written["nearest"]["changes"][0]["text"] == change.text
    assert written["nearest"]["changes"][0]["at"]["line"] == 7

    assert main(["verify", str(path), "--no-cache", "--seconds", "100"]) == 2
    assert "proved if you   add `assume(R <= A)` (copied_rows.py:7)" in capsys.readouterr().out


def test_a_weaker_variant_says_what_it_gives_up() -> None:
    found = found_for(CORPUS / "unknown" / "maxima_of_earlier_rounded_to_e4m3.py")
    assert found is not None
    assert found.uncovered == ("Y",)
    assert str(found).endswith("; no assertion then determines Y")


@pytest.mark.parametrize(
    ("name", "verdict"), [("proved/slabs_by_ordinary_copies", Proved), ("refuted/transposed_b", Refuted)]
)
def test_a_kernel_that_is_decided_has_no_variant(name: str, verdict: type) -> None:
    report = argus.verify(kernel_of(CORPUS / f"{name}.py"), solver="z3", budget=evolve(UNTIMED, runs=500))
    assert isinstance(report.verdict, verdict)
    assert report.nearest is None


def test_only_what_is_proved_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A condition under which there is no launch proves anything, and a false claim nothing."""
    kernel = kernel_of(CORPUS / "nearest" / "copied_rows.py")
    rows, others, columns = (algebra.sym(size) for size in kernel.sizes)
    nothing = Assuming((algebra.le(rows, others), algebra.lt(others, rows)))
    beside = Assuming((algebra.le(columns, 7),))

    def offered(*_: object) -> Iterator[tuple[Change, ...]]:
        yield from ((nothing,), (beside,), (Claiming((), ()),))

    monkeypatch.setattr(nearest, "_variants", offered)
    assert nearest_proved(kernel, registry.get("z3"), UNTIMED) is None


def test_no_variant_is_looked_for_once_the_time_of_the_verdict_is_over() -> None:
    kernel = kernel_of(CORPUS / "nearest" / "copied_rows.py")
    report = verify(kernel, solver="z3", budget=UNTIMED)
    solver = registry.get("z3")
    assert with_nearest(report, kernel, solver, evolve(UNTIMED, runs=1, total=5.0), None, 6.0) is report
    assert with_nearest(report, kernel, solver, UNTIMED, None, 0.0) is report  # a proof alone is asked for
    assert nearest_proved(kernel, solver, evolve(UNTIMED, total=-1.0)) is None
