"""`argus run`: what outputs are compared with, at which sizes, and the exit code of a kernel that is not right."""

from __future__ import annotations

from pathlib import Path

import pytest

from argus.cli.main import main
from argus.core.dsl.kernel import Template
from argus.runtime.run import run
from argus.runtime.run_sizes import sizes_of
from property_tests.programs import CORPUS, templates
from tests.verifier.switched_off_checks import REFUTED

Captured = pytest.CaptureFixture[str]

KERNEL = """
from argus.language import *


@kernel(target=gfx942, threads=64)
def f(X: Tensor["M N", f32], Y: Tensor["{shape}", f32]):
    assume({assumed})
    tag(X, lambda m, n: dict(m=m, n=n))
    m, n = block_id((ceil_div(X.shape[0], 16), ceil_div(X.shape[1], 16)))
    r = registers(f32, spread((16, 16), threads=64, vector=1))
    copy(X.tile((16, 16), (m, n)), r, via=global_load, edge=0)
    vmem.wait(0)
    {body}
"""
STORED = "copy({value}, Y.tile((16, 16), (m, n)), edge=0)"
CLAIM = "\n    assert_written_once(Y, lambda m, n: dict(m=m, n=n))"
TURNED = "copy(r, Y.T.tile((16, 16), (m, n)), edge=0)\n    assert_written_once(Y, lambda n, m: dict(m=m, n=n))"


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGUS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def written(body: str, shape: str = "M N", assumed: str = "X.shape[0] >= 1") -> str:
    Path("f.py").write_text(KERNEL.format(body=body, shape=shape, assumed=assumed), encoding="utf-8")
    return "f.py"


def command(file: str, *more: str, sizes: str = "M=33,N=20") -> int:
    return main(["run", file, "--on", "interpreter", "--sizes", sizes, *more])


# -- what outputs are compared with ---------------------------------------------------------------------------


@pytest.mark.share(8, among="runs beside references")
@pytest.mark.parametrize(
    ("body", "shape"),
    [
        (STORED.format(value="r + r") + CLAIM, "M N"),
        (STORED.format(value="exp(r) * r - 0.5") + CLAIM, "M N"),
        (TURNED, "N M"),
    ],
    ids=["sum", "exp", "transpose"],
)
def test_what_has_a_formula_is_compared_with_it(body: str, shape: str, capsys: Captured) -> None:
    assert command(written(body, shape)) == 0

    out = capsys.readouterr().out
    assert out.startswith("f (gfx942): right")
    assert "660 elements with the proved formula in float64" in out


def test_a_result_that_differs_from_its_formula_is_wrong() -> None:
    (template,) = templates(Path(written(STORED.format(value="r + r") + CLAIM)).absolute())
    compared = [
        run(
            template.trace(), {"M": 33, "N": 20}, on="interpreter", results=[f"each element of `Y` is {form}"]
        ).comparison
        for form in ("add(X, X)", "mul(X, 2)", "add(X, 2)", "bf16(add(X, X))")
    ]

    assert [None if each is None else each.right for each in compared] == [True, True, False, True]


def test_a_formula_with_unknown_words_is_not_evaluated() -> None:
    (template,) = templates(Path(written(STORED.format(value="r + r") + CLAIM)).absolute())
    for form in ("something(X)", "X over X", "add(X, Q)", "add(X)", "X, twice"):
        ran = run(template.trace(), {"M": 3, "N": 2}, on="interpreter", results=[f"each element of `Y` is {form}"])
        assert (ran.comparison, ran.uncompared) == (None, ("Y",))


@pytest.mark.share(8, among="runs beside references")
@pytest.mark.parametrize(("name", "sizes"), [("relu_output", "M=70,N=40,K=64"), ("row_softmax", "R=5,N=64")])
def test_sums_and_maxima_are_evaluated(name: str, sizes: str, capsys: Captured) -> None:
    path = CORPUS / "proved" / f"{name}.py"
    assert command(str(path), sizes=sizes) == 0
    assert "with the proved formula in float64" in capsys.readouterr().out


def test_an_output_without_any_reference_is_not_compared(capsys: Captured) -> None:
    assert command(written(STORED.format(value="r + r"))) == 2
    assert "compared        nothing" in capsys.readouterr().out


@pytest.mark.share(4)
@pytest.mark.parametrize(("text", "code"), [("2 * X", 0), ("2 * X + 1", 1), ("X[0]", 3), ("X + unknown", 3)])
def test_a_function_of_the_user_is_the_reference(text: str, code: int, capsys: Captured) -> None:
    Path("known.py").write_text(f"def twice(X):\n    return {text}\n", encoding="utf-8")

    assert command(written(STORED.format(value="r + r")), "--reference", "known.py:twice") == code
    shown = "".join(capsys.readouterr())
    assert {0: "the function given as reference", 1: "error[E412]", 3: "error[E903]"}[code] in shown


@pytest.mark.parametrize(("given", "code"), [("known.py", "E701"), ("known.py:no", "E903"), ("absent.py:f", "E001")])
def test_a_reference_that_is_not_there_gets_one_diagnostic(given: str, code: str, capsys: Captured) -> None:
    Path("known.py").write_text("", encoding="utf-8")

    assert command(written(STORED.format(value="r + r")), "--reference", given) == 3
    assert capsys.readouterr().err.startswith(f"error[{code}]: ")


# -- kernels that are not right ---------------------------------------------------------------------------------


@pytest.mark.share(8, among="runs beside references")
@pytest.mark.parametrize("name", ["direct_load_not_waited_for", "swapped_k_order"])
def test_a_refuted_kernel_does_not_pass(name: str, capsys: Captured) -> None:
    (template,) = templates(REFUTED / f"{name}.py")
    code = (REFUTED / f"{name}.py").read_text(encoding="utf-8").splitlines()[0].split()[-1]
    sizes = ",".join(f"{size}={value}" for size, value in sizes_of(template.trace(), {}).items())

    assert command(str(REFUTED / f"{name}.py"), sizes=sizes) == 1
    out = capsys.readouterr().out
    assert f"error[{code}]" in out
    assert f"verdict         the kernel is refuted by {code}" in out


# -- sizes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("assumed", "given", "expected"),
    [
        ("X.shape[1] == X.shape[0] + 4", {}, {"M": 256, "N": 260}),
        ("X.shape[1] == X.shape[0] + 4", {"N": 20}, {"M": 16, "N": 20}),
        ("X.shape[0] % 7 == 0", {"N": 3}, {"M": None, "N": 3}),
    ],
)
def test_sizes_meet_the_assumptions(assumed: str, given: dict[str, int], expected: dict[str, int | None]) -> None:
    kernel = traced(assumed)
    found = sizes_of(kernel.trace(), given)

    assert all(value is None or found[name] == value for name, value in expected.items())
    assert all(1 <= each <= 512 for each in found.values())
    assert run(kernel.trace(), given, on="interpreter").sizes == found


def traced(assumed: str) -> Template:
    file = written(STORED.format(value="r") + CLAIM, assumed=assumed)
    (template,) = templates(Path(file).absolute())
    return template


# -- programs -----------------------------------------------------------------------------------------------------


def test_a_program_is_run_whole(capsys: Captured) -> None:
    file = CORPUS / "programs" / "proved" / "split_k_in_a_workspace.py"
    assert command(str(file), sizes="M=40,N=40,K=64") == 0

    out = capsys.readouterr().out
    assert "1,600 elements with the proved formula in float64" in out


@pytest.mark.share(8, among="runs beside references")
def test_a_refuted_program_does_not_pass(capsys: Captured) -> None:
    file = CORPUS / "programs" / "refuted" / "parts_of_other_rows.py"
    assert command(str(file), sizes="M=40,N=40,K=64") == 1
    assert "verdict         the kernel is refuted by I4" in capsys.readouterr().out
