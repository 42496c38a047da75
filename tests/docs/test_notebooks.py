"""The cells of the notebooks run, one after the other, and hold what they assert."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.docs.execution import executed

NOTEBOOKS = Path(__file__).parents[2] / "docs" / "notebooks"


def code_of(path: Path) -> list[tuple[str, str]]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return [(f"<{path.name}, cell {number}>", text) for number, text in enumerate(code, 1)]


@pytest.mark.nightly
@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path) -> None:
    cells = code_of(path)
    assert any("assert " in text for _, text in cells)

    assert vars(executed(cells))
