"""Runs a search on a GPU and compares with cuBLAS: `python benchmarks/whole_search.py --seconds 600 --out FOLDER`.

Runs `argus optimize PROBLEM --on gpu` in a subprocess, as a user would, until the time limit, and delivers the best
design. Then runs the delivered load.py, and times the delivered kernel interleaved with `torch.mm` in both regimes.
Writes the time of each candidate and both ratios to whole_search.json in `--out`. With `--unseen`, the bandit's priors
are fitted to all recorded shapes except this one. Needs PyTorch, the solvers and the compiler on the machine with the
GPU; `--on model` runs the search without a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import argus
from argus.policy.experience import experience_text, fit_experience
from argus.policy.knowledge import kb_folder
from argus.search.events import Judged
from argus.search.journal import Journal
from argus.search.problems.problem import gemm_of
from benchmarks.recorded import TABLES, table, training_problem

HERE = Path(__file__).resolve().parent
CANDIDATE = re.compile(r"\s*\d+(/\d+)? \S+ \[")
ROUNDS = 20


def environment_without_shape(folder: Path, target: str, shape: tuple[int, int, int]) -> dict[str, str]:
    """Copy the package with priors fitted to all shapes but one; returns the environment variables to use it."""
    shutil.copytree(Path(argus.__file__).parent, folder / "argus", ignore=shutil.ignore_patterns("__pycache__", "kb"))
    shutil.copytree(kb_folder(), folder / "argus" / "kb")
    path = TABLES / f"{target}.json"
    others = [each for each in table(path).times if each != shape]
    text = experience_text(
        fit_experience([training_problem(path, each) for each in others]), [f"{len(others)} other shapes"]
    )
    (folder / "argus" / "kb" / "experience" / f"{target}.json").write_text(text, encoding="utf-8")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}


def run_search(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> list[float]:
    """Run the search; returns the seconds from the start at which each candidate was printed."""
    began, told = time.monotonic(), list[float]()
    with subprocess.Popen(  # noqa: S603 reason: our own
        command, stdout=subprocess.PIPE, text=True, env=environment, cwd=folder
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            now = time.monotonic() - began
            if CANDIDATE.match(line):
                told.append(now)
            print(f"{now:7.1f} s  {line}", end="", flush=True)
    if process.returncode:
        sys.exit(f"argus optimize ended with {process.returncode}")
    return told


def run_script(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the delivered script."""
    command = [sys.executable, "load.py"]
    script = subprocess.run(command, check=False, cwd=folder, capture_output=True, text=True)  # noqa: S603 reason: our own
    print(script.stdout or script.stderr, flush=True)
    return script


def time_against_peers(folder: Path, shape: tuple[int, int, int]) -> list[dict[str, Any]]:
    """Time the delivered kernel against its peers. Exits if its result is wrong."""
    torch, timing = import_module("torch"), import_module("argus.runtime.gpu.timing")
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    peers = import_module("benchmarks.gemm_h200")
    here = peers.family("gemm")
    (script,) = [path for path in folder.glob("*.json") if path.name not in {"kernel.json", "certificate.json"}]
    kernel = peers.loaded(torch, script)
    if not peers.right(torch, here, script.stem, kernel):
        sys.exit(f"{script.stem} is wrong")
    rows = peers.timed(torch, timing, here, {script.stem: kernel}, shape, ROUNDS)
    return [{name: row[name] for name in ("regime", "name", "milliseconds", "rate", "ratio")} for row in rows]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problem", default="gemm:8192x8192x8192:bf16")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--planner", default="bandit")
    parser.add_argument("--on", choices=("gpu", "model"), default="gpu")
    parser.add_argument("--unseen", action="store_true", help="exclude this shape from the priors' training data")
    parser.add_argument("--out", type=Path, default=HERE.parent / "build" / "whole_search")
    chosen = parser.parse_args()
    problem, target = gemm_of(chosen.problem, "sm_90a"), "sm_90a"
    shape = (problem.m, problem.n, problem.k)
    chosen.out.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as name:
        folder = Path(name)
        environment = environment_without_shape(folder / "site", target, shape) if chosen.unseen else dict(os.environ)
        command = [sys.executable, "-m", "argus", "optimize", chosen.problem, "--target", target, "--on", chosen.on]
        command += ["--budget-seconds", f"{chosen.seconds:g}", "--workers", str(chosen.workers)]
        command += ["--seed", str(chosen.seed), "--planner", chosen.planner]
        command += ["--journal", str(folder / "runs.db"), "--out", str(folder / "best")]
        seconds = run_search(command, environment, folder)
        with Journal(folder / "runs.db") as journal:
            judged = [each.judgement for each in journal.events("run-0001") if isinstance(each, Judged)]
        rows = [
            {"seconds": round(when, 1), "name": each.name, "outcome": each.outcome, "microseconds": each.microseconds}
            for when, each in zip(seconds, judged, strict=True)
        ]
        script, times = run_script(folder / "best"), list[dict[str, Any]]()
        if chosen.on == "gpu":
            times = time_against_peers(folder / "best", shape)
        shutil.copy(folder / "best" / "report.html", chosen.out)
    about = {name: getattr(chosen, name) for name in ("problem", "seconds", "workers", "seed", "planner", "unseen")}
    device = import_module("torch").cuda.get_device_name() if chosen.on == "gpu" else "none"
    data = {"about": "python benchmarks/whole_search.py", "device": device, **about}
    data |= {"script": script.stdout.strip(), "candidates": rows, "times": times}
    (chosen.out / "whole_search.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return script.returncode


if __name__ == "__main__":
    sys.exit(main())
