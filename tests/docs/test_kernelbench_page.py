"""The page of KernelBench: rows of several runs are one a problem, and the page counts what they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.kernelbench_page import HEADS, HOST, PAGE, PLAIN, ROWS, SINGLE, cells, page, read

ROW: dict[str, Any] = {
    "level": 1,
    "problem": 19,
    "name": "ReLU",
    "proved": True,
    "right": True,
    "stock": True,
    "stock_tf32": False,
    "against": ["float64"],
    "seeds": 2,
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
WHOLE = ROW | {
    "seeds": 5,
    "wanted": 8,
    "errors": [1e-7] * 7,
    "shapes": [160],
    "shapes_dropped": {"96": "RuntimeError: too small"},
    "cut": "the run ended",
    "rewrites": ["a product with a row"],
    "gpu": "NVIDIA H200",
    "gpus": 2,
    "torch": "2.11.0",
    "jobs": 28,
    "cores": 32,
    "tree": {"sources": "0123456789abcdef", "commit": "a" * 40},
    "milliseconds": {"eager": 2.0, "argus": 1.0, SINGLE: 3.0, PLAIN: 2.0, "compile": 1.6},
    "first_call": {"argus": 0.4, "compile": 2.5, "compile, warm": 0.6},
    "ahead": {"cold": True, "seconds": 12.5, "proofs": 9.0},
}
LOST = {"level": 2, "problem": 3, "name": "Sum_", "error": "it did not finish within 20 s"}


def test_the_page_is_what_the_rows_give() -> None:
    assert PAGE.read_text(encoding="utf-8") == "\n".join(page(read([ROWS]))) + "\n"


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
    assert "| proved and right | 1 | 2.00 (1) | 1 of 1 | not measured |  | not measured |" in text
    assert "* 2.3 Sum: it did not finish within 20 s" in text
    assert "* 3 of 200 problems were begun, 2 ran." in text
    assert "* Seeds: 2 (2 problems). Other shapes: 0 (2 problems)." in text
    assert "* 2 problems by sources that their rows do not name, from before rows did." in text
    assert "without algebraic rewrites" not in text


def test_the_page_says_what_a_run_was(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text("\n".join(json.dumps(each) for each in (WHOLE, LOST)) + "\n", encoding="utf-8")
    text = "\n".join(page(read([rows])))
    assert "* 1 problems on 2 NVIDIA H200, torch 2.11.0, with 28 processes that proved and built on 32 cores." in text
    assert "* 1 problems by sources of digest 0123456789abcdef at commit aaaaaaaaaaaa." in text
    assert "* Seeds: 5 (1 problems). Other shapes: 1 (1 problems)." in text
    assert "* 1 problems have fewer comparisons than were asked for; the last column says why." in text
    assert "* Times beside eager torch for 1 problems; compile for 1." in text
    assert "* Times beside max-autotune for 0, in a turn of its own, in which all are measured again." in text
    measured = "2.00 (1) | 1 of 1 | 3.00 (1) | 1 of 1 | 1.60 (1) | not measured | 0.50 (1)"
    assert f"| proved and right | 1 | {measured} |" in text
    assert "| proved and right, 1 of them timed without algebraic rewrites | 1 | 1.00 (1) | 0 of 1 |" in text


def test_a_problem_shows_its_share_of_the_bound_and_what_compilation_takes() -> None:
    shown = dict(zip(HEADS, cells(ROW), strict=True))
    assert (shown["problem"], shown["comparisons"], shown["error"], shown["eager's error"]) == (
        "1.19 ReLU",
        "2",
        "2.0e-07",
        "3.0e-07",
    )
    assert (shown["argus"], shown["eager"], shown["ratio"], shown["bound"]) == ("1.000", "2.000", "2.00", "50 %")
    assert "in eager torch: no template computes it" in list(cells(COUNTED))[-1]
    shown = dict(zip(HEADS, cells(WHOLE), strict=True))
    assert (shown["comparisons"], shown["without TF32"], shown["without rewrites"]) == ("7 of 8", "3.00", "1.00")
    assert list(cells(WHOLE))[-5:-1] == ["12.5 (9.0)", "0.4", "2.5", "0.6"]
    assert shown[""] == "sums in another order (a product with a row); cut: the run ended; 1 other shapes, not at 96"


def test_max_autotune_is_compared_with_the_times_of_its_own_turn(tmp_path: Path) -> None:
    searched = WHOLE | {"errors": [1e-7], "milliseconds": {"eager": 2.2, "argus": 1.1, "max-autotune": 3.3}}
    hosts = WHOLE | {HOST: {"argus": 0.3, "eager": 0.1, "compile": 0.2}}
    rows = tmp_path / "rows.jsonl"
    rows.write_text("\n".join(json.dumps(each) for each in (hosts, searched)) + "\n", encoding="utf-8")
    (found,) = read([rows])
    assert found["milliseconds"] == WHOLE["milliseconds"]
    text = "\n".join(page([found]))
    assert "* Times beside max-autotune for 1, in a turn of its own" in text
    assert "* The GPU had work when calls began in 1 of these 2 turns" in text
    assert "| proved and right | 1 | 2.00 (1) | 1 of 1 | 3.00 (1) | 1 of 1 | 1.60 (1) | 3.00 (1) | 0.50 (1) |" in text
    assert "median of 1: argus 0.30 ms, eager 0.10 ms, compile 0.20 ms." in text
    assert "3.300 (3.00)" in list(cells(found))
