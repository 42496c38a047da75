"""Verification figures: `python benchmarks/verify.py [--quick]`.

cold: a new process with an empty answer cache, imports included. warm: the same process again, answer cache off.
cached: the same process, answers on disk. Each is the minimum of five. Twins: time from the traced kernel's
file to the replayed counterexample, minimum of three, one process a solver.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from argus.language import Template

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "tests" / "corpus"
SOLVERS = ("z3", "cvc5", "portfolio", "all")
CORE = ("core", "core/dsl", "core/proof", "core/protocol", "core/layout")
FOLDERS = (*CORE, "solvers", "interp", "emit", "runtime", "kernels")

COLD = """
import sys, time
start = time.perf_counter()
import argus
from argus.kernels.gemm import gemm
report = argus.verify(gemm, solver=sys.argv[1], config=sys.argv[2])
print(time.perf_counter() - start, report.cost.asked, report.cost.smt, type(report.verdict).__name__)
"""
IMPORT = "import time; start = time.perf_counter(); import argus; print(time.perf_counter() - start)"


def seconds(action: Callable[[], object], times: int) -> float:
    """The least wall-clock time of `times` runs."""
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - start)
    return best


def child(code: str, *arguments: str) -> list[str]:
    """What a fresh interpreter prints."""
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(  # noqa: S603  # our own text, no shell
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, cwd=ROOT, env=usual
    )
    return done.stdout.split()


def shipped(times: int) -> None:
    from argus.kernels.gemm import gemm  # noqa: PLC0415  # timed apart, in children

    print(f"import argus: {min(float(child(IMPORT)[0]) for _ in range(times)):.3f} s")
    print("\nshipped GEMM     solver       cold s   warm s   cached s   questions   SMT queries   verdict")
    for config in gemm.instances():
        for solver in SOLVERS:
            _timed(config, solver, times)


def _timed(config: str | None, solver: str, times: int) -> None:
    import argus  # noqa: PLC0415  # timed apart, in children
    from argus.kernels.gemm import gemm  # noqa: PLC0415  # as above
    from argus.solvers.cache import Cache  # noqa: PLC0415  # as above

    runs = [child(COLD, solver, config or "") for _ in range(times)]
    cold = min(float(run[0]) for run in runs)
    warm = seconds(lambda: argus.verify(gemm, solver=solver, config=config), times)
    with tempfile.TemporaryDirectory() as folder:
        cache = Cache(Path(folder))
        argus.verify(gemm, solver=solver, config=config, cache=cache)
        cached = seconds(lambda: argus.verify(gemm, solver=solver, config=config, cache=cache), times)
        cache.close()
    asked, smt, verdict = runs[0][1:]
    figures = f"{cold:8.3f} {warm:8.3f} {cached:10.3f} {asked:>11} {smt:>13}"
    print(f"{config:16} {solver:10} {figures}   {verdict}", flush=True)


def twins(times: int) -> None:
    import argus  # noqa: PLC0415  # timed apart, in children

    rows: dict[str, dict[str, object]] = {}
    wrong = 0
    for path in sorted(CORPUS.glob("refuted/*.py")):
        wanted = path.read_text().splitlines()[0].split()[-1]
        for solver in ("z3", "cvc5"):
            kernel = _load(path)
            found: list[argus.Report] = []
            took = seconds(lambda k=kernel, s=solver, out=found: out.append(argus.verify(k, solver=s)), times)
            verdict = found[0].verdict
            code = verdict.counterexample.code if isinstance(verdict, argus.Refuted) else type(verdict).__name__
            wrong += code != wanted
            rows.setdefault(path.stem, {"code": wanted})[solver] = took if code == wanted else f"{code}!"
    print(f"\n{'twin':28} code   z3 s     cvc5 s")
    for name, row in rows.items():
        shown = [f"{row[s]:8.3f}" if isinstance(row[s], float) else str(row[s]) for s in ("z3", "cvc5")]
        print(f"{name:28} {row['code']!s:5} {shown[0]} {shown[1]}")
    for solver in ("z3", "cvc5"):
        times_of = [t for row in rows.values() if isinstance(t := row[solver], float)]
        print(
            f"{solver}: {len(times_of)} of {len(rows)} with the right code, median {statistics.median(times_of):.3f} s"
        )
    if wrong:
        sys.exit(f"{wrong} twins without the right code")


def _load(path: Path) -> Template:
    spec = importlib.util.spec_from_file_location(f"corpus_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return next(v for v in vars(module).values() if isinstance(v, Template))


def lines() -> None:
    print("\nlines of Python")
    for folder in FOLDERS:
        files = list((ROOT / "argus" / folder).rglob("*.py"))
        print(f"  argus/{folder:12} {len(files):3} files {sum(len(f.read_text().splitlines()) for f in files):6}")
    for folder in ("tests", "property_tests", "benchmarks"):
        files = [f for f in (ROOT / folder).rglob("*.py") if "corpus" not in f.parts]
        print(f"  {folder:18} {len(files):3} files {sum(len(f.read_text().splitlines()) for f in files):6}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one run of each instead of five")
    quick = parser.parse_args().quick
    os.environ["ARGUS_CACHE_DIR"] = tempfile.mkdtemp()
    print(json.dumps({"python": sys.version.split()[0], "cpus": os.cpu_count()}))
    shipped(1 if quick else 5)
    twins(1 if quick else 3)
    lines()


if __name__ == "__main__":
    main()
