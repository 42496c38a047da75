"""Problems given by files: a user's kernels and reference."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from argus.cli.main import main
from argus.core.cost.predict import predict
from argus.core.diagnostic import ArgusError
from argus.search.designs.space import situation
from argus.search.evaluation.gate import Tools, evaluate
from argus.search.evaluation.gate_task import GateTask
from argus.search.evaluation.judgement import Judgement
from argus.search.evaluation.numerics import disagreement
from argus.search.evaluation.processes import WorkerProcesses
from argus.search.loop import Limits
from argus.search.problems.kernel_file import KernelFile, signature
from argus.search.problems.llm_kernels import trace_candidate
from argus.search.problems.problem import problem_of
from argus.search.problems.workload import work_of
from argus.search.run import Settings, optimize
from argus.solvers.cache import Cache
from argus.verifier.api import build, verify
from tests.search.evaluation.test_gate import Card

ROOT = Path(__file__).parents[3]
SMALL = {
    "gfx942": ROOT / "examples" / "01_prove.py",
    "sm_90a": ROOT / "tests" / "corpus" / "proved" / "slabs_by_ordinary_copies.py",
}
RIGHT = "\n\ndef reference(A, B):\n    return A @ B.T\n"
WRONG = "\n\ndef reference(A, B):\n    return A @ B.T + 1\n"
SIZES = "M=256,N=128,K=64"


def kernel_file(folder: Path, target: str = "gfx942", reference: str = RIGHT) -> Path:
    path = folder / "kernel.py"
    path.write_text(SMALL[target].read_text(encoding="utf-8") + reference, encoding="utf-8")
    return path


def problem(path: Path, sizes: str = SIZES) -> KernelFile:
    found = problem_of(str(path), "sm_90a", sizes)
    assert isinstance(found, KernelFile)
    return found


def searched(path: Path, *more: str, code: int = 0, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    journal = str(path.with_name("runs.db"))
    arguments = ["optimize", str(path), "--sizes", SIZES, "--on", "model", "--journal", journal, "--json", *more]
    assert main(arguments) == code
    return json.loads(capsys.readouterr().out)


@pytest.mark.share(8)
@pytest.mark.parametrize("target", SMALL)
def test_a_file_is_searched_end_to_end(target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = searched(kernel_file(tmp_path, target), "--trials", "2", capsys=capsys)

    assert found["target"] == target
    assert found["best"]["outcome"] == "timed"
    assert found["best"]["microseconds"] >= found["light"] > 0
    assert {"invariants", "interpreter", "compile", "timing"} <= found["best"]["seconds"].keys()


@pytest.mark.share(12, among="problems in files")
def test_a_wrong_reference_stops_every_candidate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = searched(kernel_file(tmp_path, reference=WRONG), "--trials", "2", code=1, capsys=capsys)

    assert [each["outcome"] for each in found["judged"]] == ["wrong", "wrong"]
    assert "differ from `reference`" in found["judged"][0]["why"]


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("", "has no function `reference`"),
        ("\nreference = 3\n", "has no function `reference`"),
        ("\n\ndef reference(A, D):\n    return A\n", "`reference` raised TypeError"),
        ("\n\ndef reference(A):\n    return A\n", "returns an array of shape"),
        ("\n\ndef reference(A, B):\n    return {'D': A @ B.T}\n", "returns nothing for the output `C`"),
    ],
)
def test_an_unusable_reference_is_reported(reference: str, said: str, tmp_path: Path) -> None:
    path = kernel_file(tmp_path, reference=reference)
    with pytest.raises(ArgusError) as caught:
        disagreement(problem(path), problem(path).kernel("matmul"))

    assert caught.value.diagnostic.code == "E903"
    assert said in caught.value.diagnostic.message
    assert caught.value.diagnostic.help


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ("", "sizes are missing"),
        ("M=4,N=4", "no value is given for K"),
        ("M=4,N=4,K=4,L=4", "`L` is given twice or is not a size"),
        ("M=4,N=4,K=4,K=8", "`K` is given twice"),
        ("M=4,N=4,K=-4", "`K=-4` is not a size"),
        ("M=4,N=4,K=5", "can be launched at M=4,N=4,K=5"),
        ("M=999999999999,N=4,K=4000000", "`A` exceeds any GPU's memory"),
    ],
)
def test_unusable_sizes_are_reported(sizes: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ArgusError) as caught:
        problem(kernel_file(tmp_path), sizes)

    assert caught.value.diagnostic.code == "E903"
    assert said in caught.value.diagnostic.message


@pytest.mark.share(12, among="searches of files")
def test_a_run_resumes_only_with_the_same_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = kernel_file(tmp_path)
    first = searched(path, "--trials", "1", capsys=capsys)
    arguments = ["optimize", "--resume", first["run"], "--on", "model", "--journal", first["journal"], "--trials", "2"]

    assert main([*arguments, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["judged"]) == 2
    path.write_text(path.read_text(encoding="utf-8") + "# edited\n", encoding="utf-8")
    assert main(arguments) == 3
    shown = capsys.readouterr().err
    assert "E903" in shown
    assert "has changed since the run began" in shown


def test_a_problem_is_named_with_the_digest_of_its_text(tmp_path: Path) -> None:
    found = problem(kernel_file(tmp_path))

    assert problem_of(str(found), found.target) == found
    assert found.digest in str(found)


def test_designs_are_kernels_and_rewrites_by_up_to_two_techniques(tmp_path: Path) -> None:
    found = problem(kernel_file(tmp_path))
    options = {each.name: each for each in situation(found).options}

    assert "matmul+loop-unrolling" in options
    assert options["matmul"].steps == ()
    assert {len(each.steps) for each in options.values()} == {0, 1, 2}
    assert options.keys() == found.variants.keys()
    unrolled = situation(found).features.index("technique loop-unrolling")
    assert options["matmul+loop-unrolling"].features[unrolled] == 1.0


def test_the_work_of_a_product_is_that_of_its_tiles(tmp_path: Path) -> None:
    found = problem(kernel_file(tmp_path))
    counted = work_of(found.kernel("matmul"), found.sizes)
    work = counted.work

    assert dict(work.flops) == {"bf16": 2.0 * 256 * 128 * 64}
    assert (work.reads, work.writes) == (2.0 * (256 + 128) * 64, 2.0 * 256 * 128)
    assert counted.unknown == ()


@pytest.mark.share(12, among="searches of files")
def test_claims_are_suggested_where_there_are_none_and_the_verdict_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = kernel_file(tmp_path)
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(each for each in lines if not each.startswith("    assert_")), encoding="utf-8")
    found = searched(path, "--trials", "1", capsys=capsys)

    assert found["best"]["outcome"] == "timed"
    assert "claims of matmul are suggested by Argus: the file has none" in found["best"]["notes"]


FAMILY = """
from types import SimpleNamespace
from argus.language import *

WAYS = {"flat": SimpleNamespace(bk=8, least=1), "deep": SimpleNamespace(bk=16, least=64)}

@kernel(target=gfx942, threads=64, configs=WAYS)
def product(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16], *, cfg):
    (M, K), (N, _) = A.shape, B.shape
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    assume(K >= cfg.least, K % 4 == 0)
    mm = mfma(mfma_f32_32x32x8_bf16).over(waves=(1, 1), tile=(32, 32), k=cfg.bk)
    m, n = block_id((ceil_div(M, 32), ceil_div(N, 32)))
    a = registers(bf16, mm.A)
    b = registers(bf16, mm.B)
    acc = registers(f32, mm.C)
    for k in loop(ceil_div(K, cfg.bk)):
        copy(A.tile((32, cfg.bk), (m, k)), a, via=global_load, edge=0)
        copy(B.tile((32, cfg.bk), (n, k)), b, via=global_load, edge=0)
        vmem.wait(0)
        mma(mm, acc, a, b, init=eq(k, 0))
    assert_covers(acc.tag.k, 0, K)
    copy(acc.to(bf16), C.tile((32, 32), (m, n)), edge=0)
    assert_written_once(C, lambda m, n: dict(m=m, n=n))

@kernel(target=sm_90a, threads=32)
def other(A: Tensor["M", bf16]):
    pass

def reference(A, B):
    return A @ B.T
"""


def test_admissible_configurations_of_a_family_are_designs(tmp_path: Path) -> None:
    path = tmp_path / "family.py"
    path.write_text(FAMILY, encoding="utf-8")

    def bases(sizes: str) -> set[str]:
        found = problem_of(f"{path}:product", "gfx942", sizes)
        assert isinstance(found, KernelFile)
        return {each.base for each in found.variants.values()}

    assert bases("M=64,N=64,K=64") == {"product_flat", "product_deep"}
    assert bases("M=64,N=64,K=32") == {"product_flat"}


@pytest.mark.share(12, among="problems in files")
def test_a_text_for_a_file_has_the_parameters_of_its_kernel(tmp_path: Path) -> None:
    found = problem(kernel_file(tmp_path))
    text = SMALL["gfx942"].read_text(encoding="utf-8")

    assert signature(trace_candidate(text, found)) == signature(found.kernel("matmul"))
    with pytest.raises(ArgusError) as caught:
        trace_candidate(
            text.replace("def matmul(A: ", "def matmul(D: ").replace("A.", "D.").replace("tag(A", "tag(D"), found
        )
    assert caught.value.diagnostic.code == "E907"
    assert "expected A (M, K) of bf16" in caught.value.diagnostic.message


def test_from_python_a_file_is_searched_by_its_path_and_sizes(tmp_path: Path) -> None:
    path = kernel_file(tmp_path)
    settings = Settings("exhaustive", Limits(trials=1), journal=tmp_path / "runs.db")
    found = optimize(str(path), settings=settings, sizes=SIZES)

    assert found.problem == problem(path)
    assert found.best is not None
    assert found.best.name == "matmul"


@pytest.mark.share(12, among="searches of files")
def test_a_worker_process_judges_by_the_name_of_the_problem(tmp_path: Path) -> None:
    found = problem(kernel_file(tmp_path))
    workers = WorkerProcesses(GateTask(str(found), found.target), 1, 120.0)
    name = "matmul+loop-unrolling"
    try:
        judgement = workers.result(name, workers.submit(name))
    finally:
        workers.close()

    assert judgement is not None
    assert judgement.outcome == "timed", judgement.why


@pytest.mark.share(32, among="deliveries")
@pytest.mark.parametrize("target", SMALL)
def test_the_best_is_delivered_and_certified_elsewhere(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = kernel_file(tmp_path, target)
    found = searched(path, "--trials", "1", "--out", str(tmp_path / "best"), capsys=capsys)
    assert {Path(each).name for each in found["files"]} >= {"problem.py", "kernel.json", "load.py", "report.html"}
    shutil.move(tmp_path / "best", tmp_path / "elsewhere")
    path.unlink()

    assert main(["certify", str(tmp_path / "elsewhere"), "--json"]) == 0
    states = {each["name"]: each["state"] for each in json.loads(capsys.readouterr().out)["checks"]}
    assert [name for name, state in states.items() if state != "ok"] == ["run", "report"]
    page = (tmp_path / "elsewhere" / "report.html").read_text(encoding="utf-8")
    assert "kernel.py at M=256" in page
    assert str(tmp_path) not in page
    with (tmp_path / "elsewhere" / "problem.py").open("a", encoding="utf-8") as stream:
        stream.write("\n")
    assert main(["certify", str(tmp_path / "elsewhere")]) == 1


@pytest.mark.share(12, among="problems in files")
def test_a_device_gets_the_kernel_and_its_time_is_compared_with_its_own_work(tmp_path: Path) -> None:
    """The file declares almost no work, but the kernel multiplies."""
    path = kernel_file(tmp_path, "sm_90a", RIGHT + '\n\ndef work(M, N, K):\n    return {"writes": 2}\n')
    found = problem(path, "M=8192,N=8192,K=8192")
    least = found.bounds_of(found.kernel("gemm")).least
    assert found.bounds.least < least
    assert "the file declares" in found.counted.description
    tools = Tools(
        lambda kernel: verify(kernel, cache=Cache()), lambda kernel, folder: build(kernel, directory=folder), predict
    )

    def judgement(microseconds: float) -> Judgement:
        card = Card(microseconds=microseconds)
        return evaluate(found, "gemm", evolve(tools, device=card, folder=tmp_path / "code"))

    assert (judgement(2 * least).outcome, judgement(2 * least).reward) == ("timed", "measured")
    assert judgement(0.9 * least).outcome == "cheat"
