"""Tabulates the planners' GEMM search space: `python benchmarks/space.py prepare --target T`, then `... run`.

prepare: proves and compiles every point of a target's space. build/space/TARGET then contains NAME.json and NAME.cubin
(or NAME.hsaco) of each ready point, and table.json of all: verdict, seconds, registers, spills, shared memory,
occupancy, and why a point is left out. Needs no GPU. run: on an H200, checks and times all ready points for each shape
in short interleaved bursts; needs neither solver nor compiler. Writes times to space.json in `--out` after each batch,
so that an interrupted run keeps them; `--known FILE` skips points that the file already has.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from attrs import asdict

from argus.runtime.processes.watchdog import WatchedProcess
from argus.search.tuning.candidates import design_space
from argus.search.tuning.prepare import each, processors
from argus.search.tuning.search import query_device_name
from argus.search.tuning.space_table import Row, row
from argus.search.tuning.space_times import Plan, Time, time_points

FOLDER = Path(__file__).resolve().parent.parent / "build" / "space"
SHAPES = "8192x8192x8192,4096x4096x4096,2048x2048x2048,1024x1024x1024,16x8192x8192,512x7168x2048"
COMMON = "clustered_bands"
MOST_BYTES = 60_000_000
_PATIENCE = 60.0
Shape = tuple[int, int, int]


def prepare(target: str, processes: int, anew: Sequence[str] | None) -> bool:
    """Prepare the points; returns whether the total code size is below the transfer limit.

    anew: points to prepare again, besides those missing from the table; None for all.
    """
    folder, names = FOLDER / target, list(design_space(target))
    rows: list[Row] = []
    if anew is None:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        known = json.loads((folder / "table.json").read_text(encoding="utf-8"))["rows"]
        rows = [Row(**found) for found in known if found["name"] in names and found["name"] not in anew]
    folder.mkdir(parents=True, exist_ok=True)
    start, kept = time.perf_counter(), {found.name for found in rows}
    for found in each(row, [name for name in names if name not in kept], processes, folder):
        rows.append(found)
        if len(rows) % 100 == 0:
            print(f"{len(rows)} of {len(names)} points in {time.perf_counter() - start:.0f} s", flush=True)
    shutil.rmtree(folder / ".making", ignore_errors=True)
    order = {name: number for number, name in enumerate(names)}
    rows.sort(key=lambda found: order[found.name])
    data = {"target": target, "seconds": time.perf_counter() - start, "rows": [asdict(found) for found in rows]}
    (folder / "table.json").write_text(json.dumps(data, indent=0), encoding="utf-8")
    carried = sum(path.stat().st_size for path in folder.iterdir())
    print("\n".join(summary_lines(rows)))
    print(f"{len(names)} points in {data['seconds']:.0f} s; {carried / 1e6:.1f} MB in {folder}")
    return carried < MOST_BYTES


def summary_lines(rows: Sequence[Row]) -> Iterator[str]:
    """Lines: number of ready points, and the most frequent reasons for leaving out others."""
    verdicts = Counter(found.verdict for found in rows)
    yield f"verdicts: {', '.join(f'{number} {verdict}' for verdict, number in verdicts.most_common())}"
    yield f"ready: {sum(found.state == 'ready' for found in rows)}"
    out = Counter((found.verdict, found.code, found.why[:90]) for found in rows if found.state != "ready")
    for (verdict, code, why), number in out.most_common(12):
        yield f"  left out {number:4} {verdict} {code}: {why}"


# -- measurement ---------------------------------------------------------------------------------------------


def run(target: str, shapes: Sequence[Shape], chosen: argparse.Namespace) -> bool:
    """Time the points; returns whether all results are right."""
    folder, until = FOLDER / target, time.monotonic() + chosen.seconds
    rows = json.loads((folder / "table.json").read_text(encoding="utf-8"))["rows"]
    ready = [found["name"] for found in rows if found["state"] == "ready"]
    ready = [name for name in ready if not chosen.names or name in chosen.names or name == COMMON]
    paths = {name: str(folder / f"{name}.json") for name in ready}
    times: list[dict[str, Any]] = []
    if chosen.known is not None:
        times = json.loads(chosen.known.read_text(encoding="utf-8"))["rows"]
    out = chosen.out / "space.json"
    chosen.out.mkdir(parents=True, exist_ok=True)
    with WatchedProcess(_PATIENCE) as child:
        device = query_device_name(child)
        print(f"{device}: {len(ready)} points, {len(shapes)} shapes", flush=True)
        for shape in shapes:
            known = {found["name"] for found in times if tuple(found["shape"]) == shape}
            plan = Plan(paths, [name for name in ready if name not in known], COMMON, chosen.batch, until)
            for batch in time_points(child, shape, plan):
                times += [asdict(found) for found in batch if found.name not in known]
                known.add(COMMON)
                out.write_text(json.dumps({"device": device, "target": target, "rows": times}), encoding="utf-8")
            print(line(shape, times, len(ready)), flush=True)
    return not any(found["why"] == "wrong results" for found in times)


def line(shape: Shape, times: Sequence[dict[str, Any]], points: int) -> str:
    """Summary of a shape so far."""
    mine = [Time(**found) for found in times if tuple(found["shape"]) == shape]
    good = sorted((found.microseconds, found.name) for found in mine if found.microseconds is not None)
    bad = [found for found in mine if found.microseconds is None]
    best = f"{good[0][1]} {good[0][0]:.1f} us, slowest {good[-1][1]} {good[-1][0]:.1f} us" if good else "none"
    lost = f"; {len(bad)} without: " + ", ".join(f"{found.name} ({found.why[:60]})" for found in bad[:4]) if bad else ""
    return f"{'x'.join(map(str, shape))}: {len(mine)} of {points} points, best {best}{lost}"


def _shapes(text: str) -> list[Shape]:
    found: list[Shape] = []
    for part in text.split(","):
        m, n, k = map(int, part.split("x"))
        found.append((m, n, k))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("prepare", "run"))
    parser.add_argument("--target", choices=("sm_90a", "gfx942"), default="sm_90a")
    parser.add_argument("--processes", type=int, default=processors())
    parser.add_argument("--shapes", type=_shapes, default=SHAPES, help="MxNxK, several with commas")
    parser.add_argument("--names", nargs="*", default=(), help="points to time; all by default")
    parser.add_argument("--again", nargs="*", help="points to prepare again, besides those missing from the table")
    parser.add_argument("--batch", type=int, default=96, help="points that are timed interleaved")
    parser.add_argument("--seconds", type=float, default=540.0, help="no batch starts after this time")
    parser.add_argument("--known", type=Path, help="times of an earlier run, to keep")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", str(FOLDER))))
    chosen = parser.parse_args()
    if chosen.part == "prepare":
        return 0 if prepare(chosen.target, chosen.processes, chosen.again) else 1
    return 0 if run(chosen.target, chosen.shapes, chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
