"""Python files stay short, except the corpus, whose twins keep the length of their original."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CORPUS = ROOT / "tests" / "corpus"
MOST_LINES = 400


@pytest.mark.parametrize("folder", ["argus", "tests", "property_tests", "benchmarks", "examples"])
def test_no_python_file_has_over_400_lines(folder: str) -> None:
    lengths = {
        path.relative_to(ROOT).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in (ROOT / folder).rglob("*.py")
        if not path.is_relative_to(CORPUS)
    }

    assert lengths
    assert {path: length for path, length in lengths.items() if length > MOST_LINES} == {}
