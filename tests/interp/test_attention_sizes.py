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
LAST_MISSING = ("    mma(ot_mm, ot, values, p)\n    z = ", "    z = ")


def edited(tmp_path: Path, name: str, *change: str) -> dict[str, Any]:
    text = (TRACED / f"{name}.py").read_text(encoding="utf-8")
    assert change[0] in text
    path = tmp_path / "edited.py"
    path.write_text(text.replace(change[0], change[1]), encoding="utf-8")
    return runpy.run_path(str(path))


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("change", "code"),
    [(NOT_RESCALED, "I23"), (LAST_MISSING, "I25")],
    ids=["values", "last"],
)
def test_a_fault_of_the_second_block_in_a_program(tmp_path: Path, change: tuple[str, str], code: str) -> None:
    program = edited(tmp_path, "attention_cdna3", *change)["attention_cdna3"].trace("mi300x")
    found = refute_launch(ProgramLaunch(program, 1, launch_contexts(program)), [], Budget(runs=15_000))
    assert found is not None
    assert found.counterexample.code == code
    assert dict(found.counterexample.sizes) == {"B": 1, "H": 1, "S": 1, "G": 1, "T": 65}


def test_rows_and_keys_of_more_than_a_tile_are_offered_between_roles(tmp_path: Path) -> None:
    change = "                o[:] = o * owed  #", "                #"
    kernel = edited(tmp_path, "attention_hopper", *change)["attention"].trace("causal")
    assert isinstance(kernel, Kernel)
    offered = [size for size in sizes_in_order(kernel) if size == {"B": 1, "H": 1, "S": 192, "G": 1, "T": 192}]
    assert len(offered) == 1
    assert [each.code for each in find_violations(Prepared(kernel), offered[0], Schedule())] == ["I23"]


def test_without_folds_no_parts_of_tiles_are_offered() -> None:
    proved = TRACED.parent / "proved" / "single_buffer.py"
    kernel = next(each.trace() for each in runpy.run_path(str(proved)).values() if hasattr(each, "instances"))
    assert 96 not in [size["M"] for size in sizes_in_order(kernel)]
