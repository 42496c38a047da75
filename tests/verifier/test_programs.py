"""Every program of tests/corpus/programs has the verdict of its first line, by each solver, and the report beside it.

The first line is `# verdict:` and `proved`, `refuted I34` or `unknown`, as in the corpus of kernels.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve

from argus.cli.main import main
from argus.core import algebra
from argus.core.algebra import TRUE
from argus.core.dtype import f32
from argus.core.index import Cond, Index
from argus.core.ir import Buffer, Kernel, Strided
from argus.core.proof import analysis
from argus.core.proof.dataflow.timeline import Step
from argus.core.proof.obligation import Obligation
from argus.core.proof.outputs import claims, programs, writes
from argus.core.proof.outputs.launch_context import launch_contexts
from argus.core.proof.sync.roles.context import RefusedError
from argus.core.query import Budget
from argus.core.verdict import ProgramReport, Proved, Refuted, Unknown
from argus.interp.programs import run_program
from argus.report.diagnostic_text import render_plain
from argus.report.sources import read_source
from argus.verifier.kernel import verify
from argus.verifier.loader import load
from argus.verifier.program import verify_program
from property_tests.programs import CORPUS
from tests.documents import complaints
from tests.tiers import Tier

PROGRAMS = CORPUS / "programs"
ROOT = CORPUS.parents[1]
both_solvers = pytest.mark.parametrize(
    "solver",
    [
        pytest.param("z3", marks=pytest.mark.share(192, among="verifier: programs")),
        pytest.param("cvc5", marks=pytest.mark.share(192, among="verifier: programs")),
    ],
)


def named(path: Path) -> str:
    return path.stem


def files(kind: str) -> list[Path]:
    return sorted((PROGRAMS / kind).glob("*.py"))


def wanted(path: Path) -> list[str]:
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("# verdict: "), f"{path.name} starts with no verdict"
    return first.removeprefix("# verdict: ").split()


def verified(path: Path, solver: str, budget: Budget | None = None) -> ProgramReport:
    (program,) = {each.program for each in load(str(path))} - {None}
    assert program is not None
    return verify_program(program, solver=solver, budget=budget)


def test_a_program_whose_time_is_spent_is_unknown() -> None:
    report = verified(files("proved")[0], "z3", Budget(total=0.0))
    assert isinstance(report.verdict, Unknown)
    assert report.verdict.reason.endswith("s for the whole proof are spent")
    assert len(report.launches) == 1


@pytest.mark.parametrize("kind", ["proved", "refuted", "unknown"])
def test_a_folder_holds_programs_of_its_verdict(kind: str) -> None:
    found = files(kind)
    assert found
    assert {wanted(path)[0] for path in found} == {kind}
    reports = {path.stem for path in (PROGRAMS / kind).glob("*.txt")}
    assert reports == ({path.stem for path in found} if kind == "refuted" else set())


@both_solvers
@pytest.mark.parametrize("path", files("proved"), ids=named)
def test_proved(path: Path, solver: str) -> None:
    report = verified(path, solver)
    assert isinstance(report.verdict, Proved), [each.diagnostics for each in report.launches]
    assert report.exit_code == 0
    assert report.crossings
    assert report.verdict.obligations == sum(
        each.verdict.obligations for each in report.launches if isinstance(each.verdict, Proved)
    )
    assert not any("nothing known" in each.holds for each in report.crossings)


@both_solvers
@pytest.mark.parametrize("path", files("unknown"), ids=named)
def test_unknown(path: Path, solver: str, tier: Tier) -> None:
    """In the default tier by the reason of the analysis alone: no run looks for a counterexample."""
    budget = evolve(Budget.about(0.5), runs=0) if tier == "default" else Budget()
    assert isinstance(verified(path, solver, budget).verdict, Unknown)


@both_solvers
@pytest.mark.parametrize("path", files("refuted"), ids=named)
def test_refuted(path: Path, solver: str, update_golden: bool) -> None:
    report = verified(path, solver)
    assert isinstance(report.verdict, Refuted), report.verdict
    assert report.exit_code == 1
    found = report.verdict.counterexample
    assert found.code == wanted(path)[1], found
    assert found.replayed == "interpreter"
    assert found.place.startswith(f"{path}:")
    assert found.thread is not None
    assert found.smallest
    (first, *_) = [each for each in report.launches if isinstance(each.verdict, Refuted)]
    text = render_plain(first.diagnostics[0], read_source, root=str(ROOT)) + "\n"
    beside = path.with_suffix(".txt")
    if update_golden and solver == "z3":
        beside.write_text(text, encoding="utf-8")
    assert text == beside.read_text(encoding="utf-8"), f"differs from {beside.name}"


@pytest.mark.share(9, among="verdicts on programs")
def test_a_program_as_text_and_as_data(capsys: pytest.CaptureFixture[str]) -> None:
    path = PROGRAMS / "proved" / "split_k_in_a_workspace.py"
    assert main(["verify", str(path), "--no-cache", "--solver", "z3"]) == 0
    text = capsys.readouterr().out
    assert "gemm_split_partial (gfx942): proved" in text
    assert "program gemm_split: proved, 2 launches" in text
    assert "part (partial -> combine): sum over k of A * B with m=i1, n=i2" in text
    assert main(["verify", f"{path}:gemm_split", "--no-cache", "--solver", "z3", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert complaints(document) == []
    assert [kernel["name"] for kernel in document["kernels"]] == ["gemm_split_partial", "gemm_split_combine"]
    (program,) = document["programs"]
    assert program["launches"] == ["partial", "combine"]
    assert program["crossings"][0]["tensor"] == "part"


def without_a_reading(kernel: Kernel, *_: object) -> RefusedError:
    return RefusedError(kernel.body[0], "no reading")


@pytest.mark.share(3)
def test_a_launch_that_is_not_understood_leaves_nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the roles of `partial` have no reading, `combine` may not take their tags for proved."""
    program = load(str(CORPUS / "traced" / "split_k.py"))[0].program
    assert program is not None
    monkeypatch.setattr(analysis, "sequentialise", without_a_reading)
    report = verify_program(program, solver="z3", budget=evolve(Budget.about(0.3), runs=0))
    first, second = report.launches
    assert isinstance(first.verdict, Unknown)
    assert isinstance(second.verdict, Unknown)
    assert "nothing known" in report.crossings[0].holds


def test_a_tensor_that_no_launch_takes_is_handed_back() -> None:
    program = load(str(PROGRAMS / "proved" / "turned_before.py"))[0].program
    assert program is not None
    spare = Buffer("spare", "global", f32, (algebra.const(2),), Strided((algebra.const(1),)))
    wider = evolve(program, parameters=(*program.parameters, spare))
    sizes = {symbol.name: 3 for symbol in program.sizes}
    given = np.arange(2, dtype=np.float32)
    assert "spare" not in run_program(wider, sizes).arrays
    assert run_program(wider, sizes, {"spare": given}).arrays["spare"] is given


def test_a_promise_about_what_a_launch_before_wrote_is_not_believed() -> None:
    program = load(str(PROGRAMS / "proved" / "turned_before.py"))[0].program
    assert program is not None
    first, second = program.launches
    made = tuple(
        evolve(buffer, promise=algebra.le(0, algebra.read(buffer.name, (algebra.coord(0), algebra.coord(1)))))
        for buffer in second.kernel.parameters
    )
    program = evolve(program, launches=(first, evolve(second, kernel=evolve(second.kernel, parameters=made))))
    after = launch_contexts(program)[1].kernel
    assert {buffer.name for buffer in after.parameters if buffer.promise is TRUE} == {"Bt"}


@pytest.mark.share(9, among="verdicts on programs")
def test_a_prepass_says_what_it_leaves() -> None:
    """Vt[b, g, e, t] is V[b, g, t, e] below T, and zero beyond: the claim is of the first T columns."""
    program = load(str(CORPUS / "traced" / "attention_cdna3.py"))[0].program
    assert program is not None
    report = verify_program(program, solver="z3", budget=Budget.about(1.0))
    assert isinstance(report.launches[0].verdict, Proved)
    (crossing,) = report.crossings
    assert crossing.holds == "V with b=i0, g=i1, t=i3, e=i2, and 0 from i3 = T on"


@pytest.mark.share(3)
def test_a_kernel_that_adds_is_in_doubt_by_itself() -> None:
    """What was there before is the program's to say."""
    (path,) = [path for path in files("proved") if path.stem == "split_k_added_in_memory"]
    (adding,) = [each.trace() for each in load(str(path)) if each.name.endswith("accumulate")]
    verdict = verify(adding, solver="z3", budget=Budget.about(1.0)).verdict
    assert isinstance(verdict, Unknown)
    assert "set to zero before" in verdict.reason


# -- each check earns its place ------------------------------------------------------------------------------


def nothing(*_: object, **__: object) -> Iterator[Obligation]:
    return iter(())


def yes(*_: object) -> Cond:
    return TRUE


def once(what: str, _: Index, step: Step, __: object) -> Obligation:
    return Obligation("I34", what, step.stmt, TRUE)


def tensors_need_not_be_whole(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(programs, "_completeness_obligations", nothing)


def any_count_will_do(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(programs, "_at_most_once", once)
    for module in (claims, writes):
        patch.setattr(module, "holds_once", yes)


CASES = (
    ("workspace_of_whole_tiles", tensors_need_not_be_whole),
    ("zeros_in_whole_tiles_alone", tensors_need_not_be_whole),
    ("last_part_not_added", any_count_will_do),
    ("added_twice", any_count_will_do),
)


@pytest.mark.share(192, among="verifier: programs")
@pytest.mark.parametrize(("twin", "switch_off"), CASES, ids=[twin for twin, _ in CASES])
def test_a_twin_slips_past_without_its_check(
    twin: str, switch_off: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = PROGRAMS / "refuted" / f"{twin}.py"
    switch_off(monkeypatch)
    assert isinstance(verified(path, "z3").verdict, Proved)
