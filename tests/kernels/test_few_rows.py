"""GEMM of a few rows of A with rows of any length: proved, its text computes the product, wrong sums are not proved."""

from __future__ import annotations

import inspect
from types import ModuleType

import pytest
from attrs import evolve

from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.kernels import few_rows
from argus.kernels.few_rows import COLUMNS, FAMILIES
from argus.language import Template
from argus.runtime.cpu.validate import validate
from argus.verifier.kernel import verify

KERNELS = {**FAMILIES, "columns": COLUMNS}
ALL = [(name, count, config) for name, own in KERNELS.items() for count in own for config in own[count].configs]
NO_RUNS = evolve(Budget(), runs=0)


@pytest.mark.share(9)
@pytest.mark.parametrize(("name", "count", "config"), ALL)
def test_every_configuration_is_proved(name: str, count: int, config: str) -> None:
    verdict = verify(KERNELS[name][count], config=config, solver="z3", budget=NO_RUNS).verdict

    assert isinstance(verdict, Proved), verdict
    assert any("assert_equals(C" in each for each in verdict.results)


@pytest.mark.share(24)
@pytest.mark.parametrize(("name", "count", "config"), ALL)
def test_the_text_agrees_with_the_interpreter(name: str, count: int, config: str) -> None:
    many, lengths = "M" if name == "columns" else "N", (4, 4100) if config.endswith("wide") else (1, 2101)
    sizes = [{many: rows, "K": length} for rows, length in zip((5, 9), lengths, strict=True)]
    found = validate(KERNELS[name][count].trace(config), sizes, seeds=1)
    assert all(each.right and each.elements for each in found.trials), found


EDITS = {
    "one row of A for all": ("block.columns(few[m]) for m", "block.columns(few[0]) for m"),
    "elements of B squared": ("row(chunk) * v)", "row(chunk) * v * v)"),
    "columns of A of the next chunk": ("row(chunk) * v)", "row(chunk + 1) * v)"),
    "only the last chunk": ("sums[m][:] = sums[m] + term", "sums[m][:] = term"),
    "rows of C exchanged": ("[C[m] for", "[C[count - 1 - m] for"),
}


def edited(old: str, new: str) -> Template:
    """The kernel of two rows where the module has one edit."""
    text = inspect.getsource(few_rows)
    assert text.count(old) == 1
    made = ModuleType("edited")
    exec(compile(text.replace(old, new), few_rows.__file__, "exec", dont_inherit=True), made.__dict__)  # noqa: S102 reason: our module
    return made.FAMILIES["gemm_nt"][2]


@pytest.mark.share(16)
@pytest.mark.parametrize("name", EDITS)
def test_a_twin_of_one_edit_is_not_proved(name: str) -> None:
    assert not isinstance(verify(edited(*EDITS[name]), solver="z3", budget=NO_RUNS).verdict, Proved)
