"""docs/performance.md and its plots are what the files of measurements give, and say what they hold."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from statistics import geometric_mean
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from argus.cli.bench.figures import Point, Ratio, Roof, ratios, roofline
from argus.ops.choice import candidates
from argus.report.drawing import COLOURS
from benchmarks.dense_page import SEARCH, SELECTED
from benchmarks.performance import (
    FAMILIES,
    PAGE,
    RATIOS,
    RESULTS,
    ROOFLINE,
    ROOT,
    anchor,
    documents,
    measured,
    quartiles,
)

SVG = "{http://www.w3.org/2000/svg}"


def row(shape: tuple[int, int, int], regime: str, name: str, ratio: float, *, theirs: bool = False) -> dict[str, Any]:
    spread = [ratio - 0.02, ratio - 0.01, ratio, ratio + 0.01, ratio + 0.02]
    about: dict[str, Any] = {"shape": list(shape), "regime": regime, "name": name, "milliseconds": 1.0, "card": {}}
    return about | {"rate": 700.0 * ratio, "ratio": ratio, "ratios": spread, "theirs": theirs}


CUBE, FLAT = (4096, 4096, 4096), (16, 8192, 8192)


def drawn(text: str) -> ET.Element:
    return ET.fromstring(text)  # noqa: S314 reason: what we have written ourselves


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [
        *(row(CUBE, regime, "cuBLAS", 1.0, theirs=True) for regime in ("duty-cycled", "sustained")),
        row(CUBE, "duty-cycled", "clustered", 0.94),
        row(CUBE, "duty-cycled", "banded", 1.04),
        row(CUBE, "sustained", "clustered", 1.01),
        row(CUBE, "sustained", "banded", 0.99),
        row(FLAT, "duty-cycled", "skinny", 0.93),
    ]
    return keep(tmp_path, "gemm", "cuBLAS", rows)


def keep(folder: Path, family: str, peer: str, rows: list[dict[str, Any]]) -> Path:
    data = {"family": family, "peer": peer, "device": "NVIDIA H200", "torch": "2.11", "cuda": "13.0", "rows": rows}
    (folder / f"{family}.json").write_text(json.dumps(data), encoding="utf-8")
    return folder


def test_the_page_is_what_the_measurements_give() -> None:
    """`python benchmarks/performance.py` writes it."""
    for name, content in documents(RESULTS).items():
        assert (ROOT / name).read_text(encoding="utf-8") == content, f"run python benchmarks/performance.py: {name}"


def test_our_fastest_kernel_is_compared_with_the_peer(folder: Path) -> None:
    lines = documents(folder)[PAGE].splitlines()

    assert "## gemm vs. cuBLAS" in lines
    assert (
        "| 4096 x 4096 x 4096 | `banded`, `clustered` | 728 (1.040, 1.030 to 1.050) | 707 (1.010, 1.000 to 1.020) |"
        in lines
    )
    assert "| 16 x 8192 x 8192 | `skinny` | 651 (0.930, 0.920 to 0.940) | not timed |" in lines
    assert "| geometric mean | | 0.983 | 1.010 |" in lines
    assert "* Below 0.95, duty-cycled: 16 x 8192 x 8192 (0.930)." in lines
    assert "* Below 0.95, sustained: none." in lines
    assert any(line.endswith("Configurations: fastest of 2. TFLOP/s (ratio, its quartiles).") for line in lines)


def test_the_summary_has_a_line_for_each_family_with_both_means_and_the_least(folder: Path) -> None:
    keep(folder, "imagined", "torch", [row(CUBE, "sustained", "x", 1.25), row(FLAT, "sustained", "x", 0.8)])
    keep(folder, "layouts_tt", "torch.mm", [row(CUBE, "sustained", "clustered", 0.9)])
    lines = documents(folder)[PAGE].splitlines()

    table = [line for line in lines[: lines.index("## gemm vs. cuBLAS")] if line.startswith("| [")]
    assert [line.split(" | ")[1:] for line in table] == [
        [
            "bf16, NT: A row-major, B column-major",
            "fastest of 2",
            "cuBLAS",
            "0.983",
            "1.010",
            "0.930 (16 x 8192 x 8192) |",
        ],
        ["bf16, TT: both column-major", "selected", "torch.mm", "not timed", "0.900", "0.900 (4096 x 4096 x 4096) |"],
        ["bf16", "selected", "torch", "not timed", "1.000", "0.800 (16 x 8192 x 8192) |"],
    ]
    assert table[1].startswith("| [layouts_tt](#layouts_tt-vs-torchmm) |")


@pytest.mark.parametrize(("told", "rate"), [({}, 8 * 700), ({"products": 5}, 700)], ids=["untold", "told"])
def test_the_rate_counts_all_products_of_a_call(tmp_path: Path, told: dict[str, int], rate: int) -> None:
    keep(tmp_path, "batched", "torch.bmm", [row(CUBE, "sustained", "clustered", 1.0) | told])
    lines = documents(tmp_path)[PAGE].splitlines()

    count = told.get("products", 8)
    name = "4096 x 4096 x 4096"
    assert f"| {count} of {name} | `clustered` | not timed | {rate} (1.000, 0.990 to 1.010) |" in lines


def test_batches_are_counted_as_the_family_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
    for name in ("batched", "epilogues_gated"):
        products = import_module(f"families.{name}").products
        assert all(FAMILIES[name].products(shape) == products(shape) for shape in (CUBE, FLAT, (128, 128, 64)))


def test_every_family_of_the_page_is_one_of_the_benchmark() -> None:
    files = {path.stem for path in (ROOT / "benchmarks" / "families").glob("*.py")}
    assert files >= FAMILIES.keys()


def test_other_peers_have_a_mean_of_their_own(folder: Path) -> None:
    rows = [
        row(CUBE, "sustained", "torch", 1.0, theirs=True) | {"milliseconds": 2.0},
        row(CUBE, "sustained", "torch.compile", 1.25, theirs=True) | {"milliseconds": 1.6},
        row(CUBE, "sustained", "pairs", 2.0) | {"milliseconds": 1.0},
    ]
    lines = documents(keep(folder, "fused", "torch", rows))[PAGE].splitlines()

    assert "| vs. torch.compile | | not timed | 1.600 |" in lines
    assert not any(line.startswith("| vs. torch |") for line in lines)


def test_a_file_of_two_runs_tells_which_is_which(folder: Path) -> None:
    path = folder / "gemm.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(data | {"note": "Two runs."}), encoding="utf-8")
    lines = documents(folder)[PAGE].splitlines()

    assert lines[lines.index("## gemm vs. cuBLAS") + 4] == "Two runs."


def test_what_is_no_measurement_is_passed_over(folder: Path) -> None:
    before = documents(folder)
    (folder / "list.json").write_text("[1]", encoding="utf-8")
    keep(folder, "fp8", "scaled_mm", [row(CUBE, "sustained", "scaled_mm", 1.0, theirs=True)])
    keep(folder, "splitk", "cuBLAS", [row(CUBE, "sustained", "split_2", float("nan"))])
    assert documents(folder) == before


def test_a_link_is_the_heading_as_pages_have_it() -> None:
    assert anchor("cuBLAS + torch.mm x_1") == "cublas--torchmm-x_1"


def test_without_measurements_the_page_says_so(tmp_path: Path) -> None:
    assert "There are no measurements in benchmarks/results." in documents(tmp_path)[PAGE]


def test_choices_are_compared_with_a_search_and_with_cublas(folder: Path) -> None:
    about = {"device": "NVIDIA H200", "torch": "2.11"}
    chosen, _ = (
        candidates("gemm_nt", each, a_transposed=False, b_transposed=False, device="")[0] for each in (CUBE, FLAT)
    )
    rows = [
        {"shape": CUBE, "took": {"cuBLAS": [9.0, 9.0], "a": [10.0, 10.0], chosen: [10.3, 10.3]}},
        {"shape": FLAT, "took": {"cuBLAS": [9.0, 9.0], "a": [10.0, 10.0], "b": [11.0, 11.0]}},
    ]
    (folder / SEARCH).write_text(json.dumps(about | {"rows": rows}), encoding="utf-8")
    timed = {"shape": CUBE, "name": chosen, "regime": "sustained", "ratio": 0.85, "microseconds": 10.3}
    more = [
        timed | {"regime": "duty-cycled", "ratio": 1.2},
        *({**each, "shape": FLAT, "ratio": 1.0} for each in (timed,)),
    ]
    more.append(more[1] | {"regime": "duty-cycled"})
    (folder / SELECTED).write_text(json.dumps(about | {"rows": [timed, *more]}), encoding="utf-8")

    lines = documents(folder)[PAGE].splitlines()

    assert f"| 4096 x 4096 x 4096 | `{chosen}` | `a` | 1.030 |" in lines
    assert "Within 5 % of the fastest: 1 of 2; geometric mean 1.030." in lines
    assert "| geometric mean | 0.922 | 1.095 |" in lines
    assert "| below 0.90 | 1 | 0 |" in lines


def test_plots_have_a_mark_for_every_figure(folder: Path) -> None:
    made = documents(folder)
    roof, rows = drawn(made[ROOFLINE]), drawn(made[RATIOS])

    # Ours at two shapes and the peer at one; a key of two.
    assert len(roof.findall(f".//{SVG}circle")) == 5
    # Two regimes of one shape and one of the other; a key of two.
    assert len(rows.findall(f".//{SVG}circle")) == 5
    words = {each.text for each in rows.iter(f"{SVG}text")}
    assert {"gemm 4096x4096x4096", "gemm 16x8192x8192", "duty-cycled", "sustained"} <= words


def test_a_point_under_the_roof_lies_below_it() -> None:
    plot = drawn(roofline("x", [Point("s", 10.0, 30.0, filled=True)], Roof(4.0, (("bf16", 1000.0),))))
    (point, *_) = plot.findall(f".//{SVG}circle")
    ways = [each.attrib["points"].split() for each in plot.findall(f".//{SVG}polyline[@stroke-width='1.5']")]
    slope = next(way for way in ways if len(way) == 3)
    (x0, y0), (x1, y1), _ = ([float(part) for part in pair.split(",")] for pair in slope)
    x, y = float(point.attrib["cx"]), float(point.attrib["cy"])

    assert x0 < x < x1
    assert y > y0 + (y1 - y0) * (x - x0) / (x1 - x0)


def test_ratios_grow_to_the_right_and_one_is_marked() -> None:
    plot = drawn(ratios("x", [Ratio("a", [("s", 0.9, 0.95, 1.0)]), Ratio("b", [("s", 1.0, 1.05, 1.1)])]))
    slower, faster, _ = (float(each.attrib["cx"]) for each in plot.findall(f".//{SVG}circle"))
    one = next(each for each in plot.findall(f".//{SVG}polyline") if each.get("stroke") == "#000000")
    at = float(one.attrib["points"].split(",")[0])

    assert slower < at < faster


def test_series_of_one_colour_differ_in_form() -> None:
    names = [f"series {number}" for number in range(len(COLOURS) + 1)]
    plot = drawn(roofline("x", [Point(name, 10.0, 30.0, filled=True) for name in names], Roof(4.0, (("bf16", 1e3),))))
    squares = [each.attrib["fill"] for each in plot.findall(f".//{SVG}rect[@width='6']")]

    assert squares == [COLOURS[0], COLOURS[0]]


def test_bytes_and_quartiles() -> None:
    assert FAMILIES["gemm"].bytes((2, 3, 5)) == 2 * 5 * 5 + 2 * 6
    assert FAMILIES["fp8"].bytes((2, 3, 5)) == 5 * 5 + 2 * 6
    assert FAMILIES["epilogues_residual"].bytes((2, 3, 5)) == 2 * 5 * 5 + 4 * 6
    assert FAMILIES["epilogues_gated"].bytes((2, 3, 5)) == 2 * (2 + 6) * 5 + 2 * 6
    assert FAMILIES["epilogues_gated"].operations((2, 3, 5)) == 4 * 30
    assert quartiles([3.0]) == (3.0, 3.0)
    assert quartiles([1.0, 2.0, 3.0, 4.0, 5.0]) == (2.0, 4.0)


def test_readme_shows_the_summary() -> None:
    """The mean and the minimum of each family and regime; of a single shape its ratio."""
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    first = lines.index("| | duty-cycled | sustained |") + 2
    families = {each.family: each for each in measured(RESULTS)}

    for family, line in zip(("gemm", "few_rows", "batched", "fp8", "fp8_blocks", "fused"), lines[first:], strict=False):
        cells: list[str] = []
        for regime in ("duty-cycled", "sustained"):
            found = [row["ratio"] for _, row in families[family].ours(regime)]
            cells.append(", ".join(f"{each:.3f}" for each in dict.fromkeys((geometric_mean(found), min(found)))))
        assert line.split(" | ")[1:] == [cells[0], f"{cells[1]} |"], family
