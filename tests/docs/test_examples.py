from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from argus.cli.main import main

EXAMPLES = Path(__file__).parents[2] / "examples"
EXPECTED = {
    "01_prove.py": "proved for all sizes that satisfy:\n  K >= 1\n",
    "02_refute.py": "refuted by I1: ",
    "03_swap_solver.py": "z3: Proved, N queries reached an SMT solver\ncvc5: Proved, N queries reached an SMT solver\n",
}


def test_every_example_has_an_expectation() -> None:
    assert EXPECTED.keys() == {path.name for path in EXAMPLES.glob("*.py")}


@pytest.mark.share(9)
@pytest.mark.parametrize("name", EXPECTED)
def test_an_example_prints_the_expected_output(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")

    assert re.sub(r"\d+ queries", "N queries", capsys.readouterr().out).startswith(EXPECTED[name])


@pytest.mark.share(2)
@pytest.mark.parametrize(("name", "code"), [("01_prove.py", 0), ("02_refute.py", 1)])
def test_an_example_is_also_a_kernel_file(name: str, code: int) -> None:
    assert main(["verify", str(EXAMPLES / name), "--no-cache"]) == code
