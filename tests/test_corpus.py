"""Every kernel of tests/corpus has the verdict of its first line, and the report beside it.

Z3 is asked of every kernel, and cvc5 too; the default tier asks of a share of them, cvc5 of fewer.

The first line is `# verdict:` and `proved`, `proved E404` (the claims do not determine an output), `unknown`,
`refuted I5` or `rejected E104`; after I39 of a formula may stand the invariant that is broken. A report is the text
that a user sees, NAME.txt beside NAME.py; `make golden` accepts new texts.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import pytest
from attrs import evolve

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir import Kernel
from argus.core.query import Budget
from argus.core.verdict import Counterexample, Proved, Refuted, Report, Unknown
from argus.interp.search.runs import Runs
from argus.report.diagnostic_text import render_plain
from argus.report.sources import read_source
from argus.verifier.kernel import verify
from property_tests.programs import CORPUS, templates
from tests.documents import complaints, document
from tests.tiers import Tier

ROOT = CORPUS.parents[1]
STATIC = {"I14", "I17", "I18", "I19", "I20", "I21", "I22", "I28", "I33", "I40"}
RUN_TOO = {"I14", "I19"}  # of a cluster or of an access of a thread, a run shows it
OF_BARRIERS = {"I6", "I7", "I8", "I9", "I13", "I14", "I15", "I16", "I29", "I32"}
OF_TAGS = {"I1", "I2", "I3", "I4", "I39"}
ADVICE_BY_SOLVER = {"tiles_in_groups_all_whole"}
"""Kernels that break two obligations of one invariant: a solver decides which of them the advice is for."""
KINDS = ("proved", "refuted", "unknown", "rejected")
BRIEF = evolve(Budget.about(0.5), runs=Budget().runs)
"""Where no proof is wanted: what a solver does not find soon is looked for by running the kernel."""
both_solvers = pytest.mark.parametrize(
    "solver", [pytest.param("z3", marks=pytest.mark.share(60)), pytest.param("cvc5", marks=pytest.mark.share(256))]
)


DEAR = {
    "convolution_exchanges_its_axes",
    "convolution_transposed_without_gaps",
    "curve_through_a_column_more",
    "layer_norm_squares_merged_by_one_count",
    "promoted_one_block_short",
}
"""Kernels that take a solver more than ten seconds: left to `make test-all`."""


def named(path: Path) -> str:
    return path.stem


def files(kind: str) -> list[Path]:
    return sorted((CORPUS / kind).glob("*.py"))


def wanted(path: Path) -> list[str]:
    """The words of the verdict in the first line of a file."""
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("# verdict: "), f"{path.name} starts with no verdict"
    return first.removeprefix("# verdict: ").split()


GIVES_UP = {("attention_from_the_last_keys", "cvc5")}
"""Kernels of which one solver alone does not decide a count within its budget."""


@lru_cache(maxsize=2)
def traced(path: Path) -> tuple[Kernel, Runs]:
    """The kernel of a file, and its runs: what they violate is the same whichever solver asks for them."""
    (template,) = templates(path)
    return template.trace(), Runs()


def verified(path: Path, solver: str, budget: Budget) -> Report:
    kernel, runs = traced(path)
    report = verify(kernel, solver=solver, runs=runs, budget=budget)
    assert complaints(document([report], report.exit_code)) == []
    return report


def compare_report(path: Path, diagnostic: Diagnostic, *, update: bool) -> None:
    """The report, with paths relative to the repository, against the text beside the kernel."""
    text = render_plain(diagnostic, read_source, root=str(ROOT)) + "\n"
    beside = path.with_suffix(".txt")
    if update:
        beside.write_text(text, encoding="utf-8")
    assert beside.exists(), f"no report beside {path.name}: run with --update-golden and read what it wrote"
    assert text == beside.read_text(encoding="utf-8"), f"differs from {beside.name}; `make golden` accepts the new text"


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_holds_kernels_of_its_verdict(kind: str) -> None:
    found = files(kind)
    assert found
    assert {wanted(path)[0] for path in found} == {kind}
    reports = {path.stem for path in (CORPUS / kind).glob("*.txt")}
    assert reports == ({path.stem for path in found} if kind in ("refuted", "rejected") else set())


@both_solvers
@pytest.mark.parametrize("path", files("proved"), ids=named)
def test_proved(path: Path, solver: str) -> None:
    report = verified(path, solver, Budget())
    if (path.stem, solver) in GIVES_UP:
        assert isinstance(report.verdict, Unknown)
        assert "gave up" in report.verdict.reason
        return
    assert isinstance(report.verdict, Proved), report.diagnostics
    warnings = wanted(path)[1:]
    assert [each.code for each in report.diagnostics] == warnings
    assert report.exit_code == (2 if warnings else 0)
    assert all(finding.standing in ("proved", "not applicable", "not built yet") for finding in report.findings)


@both_solvers
@pytest.mark.parametrize("path", files("unknown"), ids=named)
def test_unknown(path: Path, solver: str, tier: Tier) -> None:
    """In the default tier by the reason of the analysis alone: no run looks for a counterexample."""
    report = verified(path, solver, evolve(BRIEF, runs=0) if tier == "default" else BRIEF)
    assert isinstance(report.verdict, Unknown), report.verdict
    assert report.verdict.reason
    assert report.verdict.attempt
    assert report.exit_code == 2


@both_solvers
@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=pytest.mark.nightly) if path.stem in DEAR else path for path in files("refuted")],
    ids=named,
)
def test_refuted(path: Path, solver: str, update_golden: bool) -> None:
    report = verified(path, solver, BRIEF)
    _, code, *_ = wanted(path)
    assert isinstance(report.verdict, Refuted), report.verdict
    assert report.exit_code == 1
    found = report.verdict.counterexample
    assert found.code == code, found
    check_counterexample(path, found)
    # The sizes of a static fault are any that the solver finds.
    if solver == "z3" or (code not in STATIC and path.stem not in ADVICE_BY_SOLVER):
        compare_report(path, report.diagnostics[0], update=update_golden and solver == "z3")


def check_counterexample(path: Path, found: Counterexample) -> None:
    """It was shown, not concluded, and it says where; of data, which way it came."""
    assert found.place.startswith(f"{path}:")
    if found.replayed == "recomputed" or found.code in STATIC - RUN_TOO:
        assert found.code in STATIC
        assert found.replayed == "recomputed"
        return
    assert found.replayed == "interpreter"
    kernel, _ = traced(path)
    assert [name for name, _ in found.sizes] == [size.name for size in kernel.sizes]
    assert found.element is not None or found.code in OF_BARRIERS
    assert found.thread is not None
    assert found.schedule
    assert found.smallest
    if found.code in OF_TAGS and "never written" not in found.message:
        spaces = {place.space for hop in found.chain for place in hop.sources}
        assert "global" in spaces or "left out" in dict(found.tags)  # a constant comes from nowhere: what is missing


@pytest.mark.parametrize("path", files("rejected"), ids=named)
def test_rejected(path: Path, update_golden: bool) -> None:
    (template,) = templates(path)
    with pytest.raises(ArgusError) as caught:
        template.trace()
    diagnostic = caught.value.diagnostic
    assert diagnostic.code == wanted(path)[1], diagnostic
    frame = diagnostic.primary.span.frame
    assert frame is not None
    assert frame.file == str(path)
    assert complaints(document([], 3, diagnostic)) == []
    compare_report(path, diagnostic, update=update_golden)
