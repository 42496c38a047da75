"""Size and import time of libraries that could replace our own code, and the plots of those that draw.

    python benchmarks/library_sizes.py altair plotly cuda.core tenacity
    python benchmarks/library_sizes.py argus

Run it with the Python of an environment in which they are installed; Argus need not be for the first. For each, one
JSON object: version, MiB of its files and of those that it requires (recursively, without extras), and seconds of an
import in a new process, the median of five. For `altair` (with vl-convert-python) and `plotly` also a scatter plot of
50 points with hover texts: bytes, seconds of the first drawing (with the import) and the second, whether both are the
same, and how many scripts and titles it has. Of `argus` the same of the first plot and of the whole page of a search
with 50 candidates.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from statistics import median
from typing import Any

ROWS = [{"trial": number, "us": 200 + 3.0 * (37 * number % 100), "hover": f"design {number}"} for number in range(50)]
DISTRIBUTIONS = {
    "altair": ("altair", "vl-convert-python"),
    "plotly": ("plotly",),
    "cuda.core": ("cuda-core",),
    "tenacity": ("tenacity",),
    "argus": (),
}
MODULES: dict[str, str] = {
    "altair": "altair, vl_convert",
    "plotly": "plotly.graph_objects",
    "argus": "argus.cli.search.page.figures",
}


def closure(names: tuple[str, ...]) -> dict[str, Distribution]:
    """The installed distributions and all that they require."""
    found: dict[str, Distribution] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        if name in found:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:  # Required on other platforms or Python versions only.
            continue
        wanted = [each for each in found[name].requires or () if "extra ==" not in each]
        waiting += [match.group() for each in wanted if (match := re.match(r"[A-Za-z0-9._-]+", each))]
    return found


def mebibytes(found: Distribution) -> float:
    paths = [found.locate_file(each) for each in found.files or ()]
    sizes = [path.stat().st_size for each in paths if (path := Path(str(each))).is_file()]
    return sum(sizes) / (1 << 20)


def seconds_of_import(modules: str) -> float:
    line = f"import time; t = time.perf_counter(); import {modules}; print(time.perf_counter() - t)"
    runs = [subprocess.run([sys.executable, "-c", line], capture_output=True, check=True) for _ in range(5)]  # noqa: S603 reason: our own text
    return median(float(each.stdout) for each in runs)


def altair_plot(*, interactive: bool) -> str:
    altair: Any = import_module("altair")
    convert: Any = import_module("vl_convert")
    chart = altair.Chart(altair.Data(values=ROWS)).mark_point()
    chart = chart.encode(x="trial:Q", y=altair.Y("us:Q", scale=altair.Scale(type="log")), tooltip=["hover:N"])
    text = chart.to_json()
    return str(convert.vegalite_to_html(text, bundle=True) if interactive else convert.vegalite_to_svg(text))


def plotly_plot() -> str:
    graphs: Any = import_module("plotly.graph_objects")
    across, up, said = ([row[name] for row in ROWS] for name in ("trial", "us", "hover"))
    figure = graphs.Figure(graphs.Scatter(x=across, y=up, text=said, mode="markers"))
    return str(figure.to_html(include_plotlyjs=True))


def argus_plot(module: str, function: str) -> str:
    """Ours, of a search of 50 candidates."""
    events: Any = import_module("argus.search.events")
    judgement: Any = import_module("argus.search.evaluation.judgement").Judgement
    told: list[Any] = [events.Started("gemm:4096x4096x4096:bf16", "sm_90a", "bandit", 0, 139.0, "tensor", 50, {})]
    for row in ROWS:
        told.append(events.Proposed(row["hover"], ("split-k (splits 1 -> 2)",), 0.5, "bandit", ""))
        told.append(events.Judged(judgement(row["hover"], "timed", "timing", "", row["us"])))
    story = import_module("argus.cli.search.page.story").story_of("run-0001", tuple(told))
    return str(getattr(import_module(f"argus.cli.search.page.{module}"), function)(story))


def plot(draw: Callable[[], str]) -> dict[str, object]:
    begun = time.perf_counter()
    text = draw()
    first = time.perf_counter() - begun
    again = draw()
    second = time.perf_counter() - begun - first
    elements = {name: text.count(f"<{name}") for name in ("script", "title")}
    seconds = [round(first, 2), round(second, 2)]
    return {"bytes": len(text.encode()), "seconds": seconds, "same again": again == text, **elements}


PLOTS: dict[str, dict[str, Callable[[], str]]] = {
    "altair": {"svg": lambda: altair_plot(interactive=False), "html": lambda: altair_plot(interactive=True)},
    "plotly": {"html": plotly_plot},
    "argus": {"svg": lambda: argus_plot("figures", "progress"), "html": lambda: argus_plot("page", "page")},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", nargs="+", choices=sorted(DISTRIBUTIONS))
    names: list[str] = parser.parse_args().library
    for name in names:
        parts = {each: round(mebibytes(found), 1) for each, found in closure(DISTRIBUTIONS[name]).items()}
        row: dict[str, object] = {
            "library": name,
            "versions": {each: distribution(each).version for each in DISTRIBUTIONS[name]},
            "MiB": round(sum(parts.values()), 1),
            "parts": parts,
            "import": round(seconds_of_import(MODULES.get(name, name)), 2),
            "plots": {kind: plot(draw) for kind, draw in PLOTS.get(name, {}).items()},
        }
        print(json.dumps(row))


if __name__ == "__main__":
    main()
