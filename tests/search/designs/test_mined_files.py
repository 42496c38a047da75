import json
from pathlib import Path

import pytest

from argus.cli.main import main
from argus.core.diagnostic import ArgusError
from argus.core.ir import For, Kernel, Policy, Stmt, walk
from argus.policy.knowledge import load_techniques, parse_technique
from argus.search.designs.mined_files import is_file, kernel_tools, mined_kernel
from argus.search.designs.mining import KERNELS, Erased, Rejected, Space, mine
from argus.search.techniques import TRANSFORMATIONS
from argus.search.techniques.erasures import ERASURES
from argus.verifier.api import verify

CORPUS = Path(__file__).parents[2] / "corpus"
PLAIN = str(CORPUS / "proved" / "double_buffer.py")
SCALED = """
from argus.language import Tensor, assert_equals, assume, block_id, ceil_div, copy, f32
from argus.language import kernel, registers, sm_90a, spread


def scaled(by):
    def scale(X: Tensor["N", f32], Y: Tensor["N", f32]):
        (N,) = X.shape
        assume(N <= 1 << 20)
        (n,) = block_id((ceil_div(N, 128),))
        x = registers(f32, spread((128,), threads=128, vector=1))
        copy(X.tile((128,), (n,)), x, edge=0)
        copy(x * by, Y.tile((128,), (n,)), edge=0)
        assert_equals(Y, lambda n: X[n] * by)

    return scale


twice = kernel(target=sm_90a, threads=128)(scaled(2.0))
thrice = kernel(target=sm_90a, threads=128)(scaled(3.0))
"""


@pytest.mark.share(16, among="kernels mined")
def test_a_kernel_of_a_file_is_mined(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "mine", PLAIN, "--sizes", "M=512,N=512,K=512", "-o", str(tmp_path)]) == 0

    assert "undone bank-conflict-mitigation: gemm -> gemm without bank-conflict" in capsys.readouterr().out
    draft = tmp_path / "01-bank-conflict-mitigation.md"
    page = parse_technique(draft.read_text(encoding="utf-8"), draft.stem, "")
    (row,) = page.lineage
    assert (row.shape, row.basis, page.conjecture) == ("M=512,N=512,K=512", "static model", False)
    (skill,) = json.loads((tmp_path / "skills.json").read_text(encoding="utf-8"))["skills"]
    assert skill["ratio"] == skill["before"] / skill["after"] != 1


def changed(kernel: Kernel) -> set[str]:
    """What of a kernel's statements says that it has techniques."""
    stmts: list[Stmt] = list(walk(kernel.body))
    advice = {stmt.name for stmt in stmts if isinstance(stmt, Policy)}
    return advice | {"unroll" for stmt in stmts if isinstance(stmt, For) and stmt.unroll}


def test_erasures_leave_nothing_of_their_technique() -> None:
    expert = mined_kernel(str(CORPUS / "proved" / "loads_between_products.py"))
    assert {"sched_barrier", "remap_xcd"} & changed(expert.kernel)

    simpler = expert
    for technique in ERASURES:
        simpler = simpler.less(technique) or simpler

    assert not changed(simpler.kernel)
    assert all(simpler.less(technique) is None for technique in ERASURES)
    assert str(simpler).startswith("gemm without ")
    assert ERASURES.keys() <= TRANSFORMATIONS.keys()


def test_a_kernel_that_computes_something_else_is_not_a_step(tmp_path: Path) -> None:
    path = tmp_path / "scales.py"
    path.write_text(SCALED, encoding="utf-8")
    twice, thrice = (mined_kernel(f"{path}:{name}") for name in ("twice", "thrice"))

    def undo(technique: str, of: Erased) -> Erased | None:
        return thrice if of is twice and technique == "loop-unrolling" else None

    tools = kernel_tools("scales.py:twice", "", None, twice.kernel, verify, lambda _kernel, _sizes: 1.0)
    (step,) = mine(twice, load_techniques(), tools, Space(KERNELS.order, undo, KERNELS.kernel, KERNELS.name))

    assert isinstance(step, Rejected)
    assert step.why.startswith("Y is another at N=")


def test_a_kernel_that_is_not_proved_is_not_mined() -> None:
    what = CORPUS / "refuted" / "single_buffer_no_second_barrier.py"
    expert = mined_kernel(str(what))

    (step,) = mine(
        expert,
        load_techniques(),
        kernel_tools(str(what), "", None, expert.kernel, verify, lambda _kernel, _sizes: 1.0),
        KERNELS,
    )

    assert isinstance(step, Rejected)
    assert step.why == "it is refuted"


def test_one_kernel_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "scales.py"
    path.write_text(SCALED, encoding="utf-8")

    with pytest.raises(ArgusError, match="has 2 kernels") as raised:
        mined_kernel(str(path))

    assert raised.value.diagnostic.code == "E903"
    assert is_file(f"{path}:twice")
    assert not is_file("clustered_bands")
    assert main(["kb", "mine", f"{path}:twice", "--times", "times.json"]) == 3
    assert main(["kb", "mine", f"{path}:twice", "--sizes", "M=1"]) == 3
    assert capsys.readouterr().err.count("error[E903]") == 2
