"""The search tries sizes with several blocks of keys, so that faults of the second block are found in the listings."""

import runpy
from pathlib import Path
from typing import Any

import pytest

from argus.core.ir import Kernel
from argus.core.proof.outputs.launch_context import launch_contexts
from argus.core.query import Budget
from argus.interp.compiled_kernel import Prepared
from argus.interp.run import find_violations
from argus.interp.search.schedule import Schedule
from argus.interp.search.search import sizes_in_order
from argus.verifier.refute_program import ProgramLaunch, refute_launch

TRACED = Path(__file__).parents[1] / "corpus" / "traced"
NOT_RESCALED = ("        ot[:] = ot * owed\n", "")
FORMULA = """
    def weight(b, h, q, t):
        return AL.exp2(AL.total(lambda d: Q[b, h, q, d] * K[b, h // (H // G), t, d], over=128) * c)

    def weighted(b, h, q, body):
        return AL.total(lambda t: weight(b, h, q, t) * body(t), over={keys})

    AL.assert_equals(
        O,
        lambda b, h, q, e: weighted(b, h, q, lambda t: {v}) / weighted(b, h, q, lambda t: 1),
    )
"""
LAST_MISSING = ("    mma(ot_mm, ot, values, p)\n    z = ", "    z = ")


def edited(tmp_path: Path, name: str, change: tuple[str, str], keys: str = "", v: str = "") -> dict[str, Any]:
    """The names of a listing with a change. keys, v: their number and an element of V, to claim the formula."""
    text = (TRACED / f"{name}.py").read_text(encoding="utf-8")
    assert change[0] in text
    text = text.replace(*change).replace("from math import", "import argus.language as AL\nfrom math import", 1)
    if keys:
        claim = "    assert_written_once(O, lambda b, h, q, e: dict(b=b, h=h, q=q, e=e))\n"
        assert claim in text
        text = text.replace(claim, claim + FORMULA.replace("{v}", v).replace("{keys}", keys))
    path = tmp_path / "edited.py"
    path.write_text(text, encoding="utf-8")
    return runpy.run_path(str(path))


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("change", "formula", "code"),
    [(NOT_RESCALED, ("T", "Vt[b, h // (H // G), e, t]"), "I39"), (LAST_MISSING, (), "I25")],
    ids=["values", "last"],
)
def test_a_fault_of_the_second_block_in_a_program(
    tmp_path: Path, change: tuple[str, str], formula: tuple[str, ...], code: str
) -> None:
    program = edited(tmp_path, "attention_cdna3", change, *formula)["attention_cdna3"].trace("mi300x")
    found = refute_launch(ProgramLaunch(program, 1, launch_contexts(program)), [], Budget(runs=15_000))
    assert found is not None
    assert found.counterexample.code == code
    sizes = dict(found.counterexample.sizes)
    rows = sizes.pop("S")  # by values, one in which the 65th key has the greatest score is among them
    assert (rows == 1) is not bool(formula)
    assert sizes == {"B": 1, "H": 1, "G": 1, "T": 65}


@pytest.mark.share(20, among="correct kernels in the interpreter")
def test_rows_and_keys_of_more_than_a_tile_are_offered_between_roles(tmp_path: Path) -> None:
    change = "                o[:] = o * owed  #", "                #"
    formula = "q + T - S + 1", "V[b, h // (H // G), t, e]"
    kernel = edited(tmp_path, "attention_hopper", change, *formula)["attention"].trace("causal")
    assert isinstance(kernel, Kernel)
    offered = [size for size in sizes_in_order(kernel) if size == {"B": 1, "H": 1, "S": 192, "G": 1, "T": 192}]
    assert len(offered) == 1
    assert [each.code for each in find_violations(Prepared(kernel), offered[0], Schedule())] == ["I39"]


def test_without_folds_no_parts_of_tiles_are_offered() -> None:
    proved = TRACED.parent / "proved" / "single_buffer.py"
    kernel = next(each.trace() for each in runpy.run_path(str(proved)).values() if hasattr(each, "instances"))
    assert 96 not in [size["M"] for size in sizes_in_order(kernel)]
