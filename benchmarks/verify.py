"""Times verification: `python benchmarks/verify.py [--quick] [--solvers z3,cvc5] [PART ...]`.

Parts: shipped (each GEMM configuration), proved (each proved kernel of the corpus), growth (one parameter of a kernel
varied at a time), edits (of one line), twins (each refuted kernel), lines. cold: a new process with an empty answer
cache, including imports; MB: its peak memory. warm: a repeated proof in one process, answer cache off. cached: the same
with the cache on. Each is the minimum of five. Growth has the same columns, then the warm time relative to the first
row of its parameter, and its reference unit relative to the first row (`growth.py`). Edits are those of `edits.py`.
Twins: time from the traced kernel to the replayed counterexample, minimum of three.
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
from collections.abc import Callable, Sequence
from pathlib import Path

import edits
import growth
from attrs import frozen

from argus.language import Template

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "tests" / "corpus"
SOLVERS = ("z3", "cvc5", "portfolio", "all")
CORE = ("core", "core/dsl", "core/proof", "core/protocol", "core/layout")
FOLDERS = (*CORE, "solvers", "interp", "emit", "runtime", "kernels")

COLD = """
import resource, sys, time
start = time.perf_counter()
import argus
if sys.argv[2] == "-":
    from argus.kernels.gemm import gemm as kernel
    config = sys.argv[3] or None
elif sys.argv[2] == "growth":
    sys.path.insert(0, "benchmarks")
    import growth
    kernel, config = list(growth.rows())[int(sys.argv[3])].family, None
else:
    import runpy
    named = runpy.run_path(sys.argv[2])
    kernel, config = next(v for v in named.values() if isinstance(v, argus.language.Template)), sys.argv[3] or None
report = argus.verify(kernel, solver=sys.argv[1], config=config)
took = time.perf_counter() - start
held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
print(took, report.cost.asked, report.cost.smt, type(report.verdict).__name__, held)
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
    """The output of a new Python process, split into words."""
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(  # noqa: S603  # our own text, no shell
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, cwd=ROOT, env=usual
    )
    return done.stdout.split()


HEADER = (
    f"{'':28} {'solver':10} {'cold s':>8} {'MB':>5} {'warm s':>8} {'cached s':>9} {'asked':>6} {'SMT':>5}   verdict"
)


@frozen
class Figures:
    """The least times of one kernel with one solver."""

    cold: float
    warm: float
    cached: float


def shipped(times: int, solvers: Sequence[str]) -> None:
    from argus.kernels.gemm import gemm  # noqa: PLC0415  # timed apart, in children

    print(f"import argus: {min(float(child(IMPORT)[0]) for _ in range(times)):.3f} s\n\nshipped GEMM\n{HEADER}")
    _table([(gemm, config, "-", config or gemm.name) for config in gemm.instances()], times, solvers)


def proved(times: int, solvers: Sequence[str]) -> None:
    print(f"\ncorpus, proved\n{HEADER}")
    _table(
        [
            (family, config, str(path), path.stem if config is None else f"{path.stem} {config}")
            for path in sorted(CORPUS.glob("proved/*.py"))
            for family in [_load(path)]
            for config in family.instances()
        ],
        times,
        solvers,
    )


def grown(times: int, solvers: Sequence[str]) -> None:
    print(f"\ngrowth\n{HEADER}")
    for solver in solvers:
        first: dict[str, tuple[float, int]] = {}
        for number, row in enumerate(growth.rows()):
            name = f"{row.what} {row.value}"
            shown, found = _figures(row.family, None, "growth", str(number), solver, times)
            warm, unit = first.setdefault(row.what, (found.warm, row.unit))
            print(f"{name:28} {shown} {found.warm / warm:8.2f} {row.unit / unit:8.2f}", flush=True)


def edited(times: int) -> None:
    print(f"\nedits of one line, {edits.SOLVER}\n{edits.HEADER}")
    for config in edits.gemm.instances():
        edits.row(config, times)


def _table(kernels: Sequence[tuple[Template, str | None, str, str]], times: int, solvers: Sequence[str]) -> None:
    """One row per kernel and solver, then the median and the maximum of each solver's columns."""
    for solver in solvers:
        rows = [_timed(family, config, path, name, solver, times) for family, config, path, name in kernels]
        for label, of in (("median", statistics.median), ("greatest", max)):
            shown = [of([getattr(row, column) for row in rows]) for column in ("cold", "warm", "cached")]
            print(f"{label:28} {solver:10} {shown[0]:8.3f} {'':5} {shown[1]:8.3f} {shown[2]:9.3f}", flush=True)


def _timed(family: Template, config: str | None, path: str, name: str, solver: str, times: int) -> Figures:
    shown, found = _figures(family, config, path, config or "", solver, times)
    print(f"{name:28} {shown}", flush=True)
    return found


def _figures(
    family: Template, config: str | None, path: str, selector: str, solver: str, times: int
) -> tuple[str, Figures]:
    """The times of one kernel. path, selector: identify the kernel to a new process."""
    import argus  # noqa: PLC0415  # timed apart, in children
    from argus.solvers.cache import Cache  # noqa: PLC0415  # as above

    runs = [child(COLD, solver, path, selector) for _ in range(times)]
    cold = min(float(run[0]) for run in runs)
    warm = seconds(lambda: argus.verify(family, solver=solver, config=config), times)
    with tempfile.TemporaryDirectory() as folder:
        cache = Cache(Path(folder))
        argus.verify(family, solver=solver, config=config, cache=cache)
        cached = seconds(lambda: argus.verify(family, solver=solver, config=config, cache=cache), times)
        cache.close()
    asked, smt, verdict, held = runs[0][1:]
    figures = f"{cold:8.3f} {held:>5} {warm:8.3f} {cached:9.3f} {asked:>6} {smt:>5}"
    return f"{solver:10} {figures}   {verdict}", Figures(cold, warm, cached)


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
    parser.add_argument("--solvers", default=",".join(SOLVERS), help="for the kernels that are proved")
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help="shipped, proved, growth, edits, twins, lines; all by default"
    )
    chosen = parser.parse_args()
    times, solvers = (1 if chosen.quick else 5), chosen.solvers.split(",")
    os.environ["ARGUS_CACHE_DIR"] = tempfile.mkdtemp()
    print(json.dumps({"python": sys.version.split()[0], "cpus": os.cpu_count()}))
    parts: dict[str, Callable[[], None]] = {
        "shipped": lambda: shipped(times, solvers),
        "proved": lambda: proved(times, solvers),
        "growth": lambda: grown(times, solvers),
        "edits": lambda: edited(times),
        "twins": lambda: twins(1 if chosen.quick else 3),
        "lines": lines,
    }
    for part in chosen.parts or parts:
        parts[part]()


if __name__ == "__main__":
    main()
