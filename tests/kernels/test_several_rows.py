"""GEMM of up to 16 rows of f32: proved, its text computes the product, wrong sums are not proved."""

from __future__ import annotations

import inspect
from types import ModuleType

import pytest

from argus.core.verdict import Proved
from argus.kernels import several_rows
from argus.kernels.several_rows import COLUMNS, CONFIGS, ROWS, Several
from argus.language import Template
from argus.ops.choice_f32 import instance
from argus.runtime.cpu.validate import validate
from argus.verifier.kernel import verify
from tests.kernels.test_gemm_f32 import NO_RUNS

ALL = [(of, count, config) for of in (ROWS, COLUMNS) for count in of for config in CONFIGS]
IDS = [f"{'rows' if of is ROWS else 'columns'} {count} {config}" for of, count, config in ALL]


@pytest.mark.share(588, among="f32")
@pytest.mark.parametrize(("of", "count", "config"), ALL, ids=IDS)
def test_every_configuration_is_proved(of: dict[int, Template], count: int, config: str) -> None:
    verdict = verify(of[count], config=config, solver="z3", budget=NO_RUNS).verdict

    assert isinstance(verdict, Proved), verdict
    assert any("assert_equals(C" in each for each in verdict.results)


@pytest.mark.share(588, among="f32")
@pytest.mark.parametrize(("of", "many"), [(ROWS, "N"), (COLUMNS, "M")], ids=["rows", "columns"])
@pytest.mark.parametrize("config", [Several(warps=2), Several(rows=2, warps=1, steps=2)], ids=str)
def test_the_text_agrees_with_the_interpreter(of: dict[int, Template], many: str, config: Several) -> None:
    found = validate(of[3].instance(config, "own"), [{many: 5, "K": 4}, {many: 9, "K": 260}], seeds=1)
    assert all(each.right and each.elements for each in found.trials), found


EDITS = {
    "one row of A for all": ("few[m].tile", "few[0].tile"),
    "elements of B squared": ("(a * v)", "(a * v * v)"),
    "columns of A of the next chunk": ("(wide,), (chunk,)", "(wide,), (chunk + 1,)"),
    "only the last chunk": ("add_compensated(own, lost[m], term)", "own[:] = term"),
    "what a lane has summed": ("own.sum(1, within=warp)", "own.max(1, within=warp)"),
    "the next block's rows": ("to.tile((high,), (at,))", "to.tile((high,), (at + 1,))"),
}


def edited(old: str, new: str) -> Template:
    """The kernel of two rows where the module has one edit."""
    text = inspect.getsource(several_rows)
    assert text.count(old) == 1
    made = ModuleType("edited")
    exec(compile(text.replace(old, new), several_rows.__file__, "exec", dont_inherit=True), made.__dict__)  # noqa: S102 reason: our module
    return made.ROWS[2]


@pytest.mark.share(588, among="f32")
@pytest.mark.parametrize("name", EDITS)
def test_a_twin_of_one_edit_is_not_proved(name: str) -> None:
    verdict = verify(edited(*EDITS[name]), config="several", solver="z3", budget=NO_RUNS).verdict
    assert not isinstance(verdict, Proved)


def test_names_say_how_many_rows_there_are() -> None:
    assert instance("gemm_nt_f32", "few_rows_16_several_rows2") is not None
    assert instance("gemm_nt_f32", "few_columns_2_several") is not None
    assert instance("gemm_nt_f32", "few_rows_17_several") is None
    assert instance("gemm_nn_f32", "few_rows_16_several") is None
