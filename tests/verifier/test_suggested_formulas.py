"""`argus suggest` proposes what outputs hold as formulas, which can be pasted, and only what is proved."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from attrs import evolve

from argus.core.dsl.kernel import Template
from argus.core.ir import Kernel
from argus.core.ir.pretty import claim_text
from argus.core.proof.outputs import equality_claims
from argus.core.proof.values.held.facts import Known
from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.solvers.choice import resolve
from argus.solvers.session.session import Session
from argus.verifier.kernel import verify
from argus.verifier.suggest import values
from argus.verifier.suggest.program import without_claims
from property_tests.programs import CORPUS
from tests.verifier.switched_off_checks import never

WITHOUT_RUNS = evolve(Budget(), runs=0)
PROPOSED: dict[str, tuple[str, ...]] = {
    "formula_turned": ("assert_equals(Y, lambda i0, i1: X[i1, i0] / M)",),
    "formula_dequantised": ("assert_equals(Y, lambda i0, i1: X[i0, i1] * S[i0, (i1 // 64)])",),
    "formula_gated": (
        "assert_equals(Y, lambda i0, i1: (X[i0, i1] + B[i1]) / (1 + exp(-G[i0, i1])))",
        "assert_equals(Z, lambda i0, i1: maximum(X[i1, i0], G[i1, i0]))",
    ),
    "formula_row_mean": ("assert_equals(Y, lambda i0: total(lambda j: X[i0, j], over=N) / N)",),
    "formula_gemm_relu": ("assert_equals(C, lambda i0, i1: maximum(total(lambda j: A[i0, j] * B[i1, j], over=K), 0))",),
    "formula_row_range": (
        "assert_equals(High, lambda i0: greatest(lambda j: X[i0, j], over=N))",
        "assert_equals(Low, lambda i0: least(lambda j: X[i0, j], over=N))",
    ),
}


def source(name: str) -> str:
    return (CORPUS / "proved" / f"{name}.py").read_text(encoding="utf-8")


def made_of(text: str, name: str) -> Kernel:
    found: dict[str, object] = {"__name__": name}
    path = str(Path(__file__).parent / f"{name}.py")
    exec(compile(text, path, "exec"), found)  # noqa: S102 reason: a corpus file
    return next(value for value in found.values() if isinstance(value, Template)).trace()


def with_claims(text: str, claims: tuple[str, ...]) -> str:
    """The text of a kernel with its formulas replaced by these lines."""
    lines = text.splitlines()
    claimed = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id == "assert_equals"
    ]
    for node in sorted(claimed, key=lambda each: -each.lineno):
        assert node.end_lineno is not None
        del lines[node.lineno - 1 : node.end_lineno]
    return "\n".join([*lines, *(f"    {claim}" for claim in claims), ""])


def proposed(kernel: Kernel) -> tuple[str, ...]:
    session = Session(resolve("z3"), WITHOUT_RUNS, None)
    return tuple(claim_text(each.claim) for each in values.proved_formulas(kernel, session))


@pytest.mark.share(8)
@pytest.mark.parametrize("name", PROPOSED)
def test_a_proposal_can_be_pasted(name: str) -> None:
    bare = without_claims(made_of(source(name), name))
    assert proposed(bare) == PROPOSED[name]
    pasted = made_of(with_claims(source(name), PROPOSED[name]), name)
    verdict = verify(pasted, budget=WITHOUT_RUNS).verdict
    assert isinstance(verdict, Proved), verdict
    assert set(PROPOSED[name]) <= {line.split(", over the reals")[0] for line in verdict.results}


def test_what_is_claimed_is_not_proposed() -> None:
    assert proposed(made_of(source("formula_row_mean"), "formula_row_mean")) == ()


def test_what_is_not_proved_is_not_proposed(monkeypatch: pytest.MonkeyPatch) -> None:
    bare = without_claims(made_of(source("formula_row_mean"), "formula_row_mean"))
    monkeypatch.setattr(Known, "equal", never)
    monkeypatch.setattr(equality_claims, "equal_over_ranges", never)
    assert proposed(bare) == ()


def test_a_variable_has_no_name_of_the_kernel() -> None:
    text = with_claims(source("formula_row_mean"), ()).replace("X", "j").replace("N", "k").replace("CHUk", "CHUNK")
    bare = without_claims(made_of(text, "formula_row_mean"))
    assert proposed(bare) == ("assert_equals(Y, lambda i0: total(lambda l: j[i0, l], over=k) / k)",)
