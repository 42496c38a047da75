"""The page of KernelBench: rows of several runs are one a problem, and the page counts what they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.kernelbench_page import PAGE, ROWS, cells, merged, page, read

ROW: dict[str, Any] = {
    "level": 1,
    "problem": 19,
    "name": "ReLU",
    "proved": True,
    "right": True,
    "stock": True,
    "stock_tf32": False,
    "against": ["float64"],
    "shapes": [],
    "shapes_dropped": {},
    "trivial": False,
    "error": "",
    "errors": [1e-7, 2e-7],
    "eager_errors": [3e-7, 0.0],
    "kernels": 1,
    "eager": {},
    "milliseconds": {"eager": 2.0, "argus": 1.0},
    "rounds": 12,
    "bytes": 2_400_000_000,
    "flops": 0,
}
COUNTED = ROW | {"problem": 33, "proved": False, "eager": {"aten.add.Tensor": "no template computes it"}}
LOST = {"level": 2, "problem": 3, "name": "Sum_", "error": "it did not finish within 20 s"}


def test_the_page_is_what_the_rows_give() -> None:
    assert PAGE.read_text(encoding="utf-8") == "\n".join(page(read([ROWS]))) + "\n"


def test_of_several_rows_most_comparisons_count_with_the_times_of_most_peers() -> None:
    beside = ROW | {"errors": [4e-7], "milliseconds": {"eager": 3.0, "argus": 1.5, "compile": 6.0}, "rounds": 30}
    for one, other in ((ROW, beside), (beside, ROW)):
        found = merged(one, other)
        assert (found["errors"], found["rounds"]) == (ROW["errors"], 30)
        assert found["milliseconds"]["compile"] == 6.0
    assert merged(LOST, ROW) is ROW
    assert merged(ROW, LOST) is ROW


def test_the_page_counts_rows_and_says_what_was_lost(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text("\n".join(json.dumps(each) for each in (LOST, COUNTED, ROW)) + "\n", encoding="utf-8")
    found = read([rows])
    assert [each["problem"] for each in found] == [19, 33, 3]
    text = "\n".join(page(found))
    assert "Of 100 problems 2 were begun, and 2 ran to their end" in text
    assert "Of 100 problems 1 were begun, and 0 ran to their end" in text
    assert "| proved and right | 1 |" in text
    assert "| eager torch adds to a count of batches, in 64 bits, and that is all | 1 |" in text
    assert "| stock comparison, with TF32 | 0 |" in text
    assert "| proved and right | 1 | 2.00 (1) | 1 of 1 | not measured |" in text
    assert "* 2.3 Sum: it did not finish within 20 s" in text


def test_a_problem_shows_its_share_of_the_bound() -> None:
    shown = list(cells(ROW))
    assert shown == ["1.19 ReLU", "yes", "yes", "2", "2.0e-07", "3.0e-07", "1.000", "2.000", "2.00", "", "50 %", ""]
    assert "in eager torch: no template computes it" in list(cells(COUNTED))[-1]
