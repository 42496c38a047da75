"""Tests and times the layout algebra vs. other libraries: `python benchmarks/layouts.py [fuzz|time] [--pairs N]`.

fuzz: every operation on N random, compact and power-of-two draws, each result checked against a table, with the
importable peers on the same draws (CuTe's DSL only on the first 3000). time: microseconds per operation in one process,
the minimum of interleaved repeats. Cold calls get new objects with values that no other call has; warm calls get the
objects of the previous call. Peers that are not installed are skipped with a message. `--path FOLDER` adds peers.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from argus import layout as ours
from argus.core.layout import LayoutError
from argus.testing.differential import table, tally
from argus.testing.draws import KINDS, OPERATIONS, Kind, draws
from argus.testing.peers import NAMES, Peer, peer

TRACED_PAIRS = 3000
REPEATS = 5
CALLS = 1000
BAR = 1.5
TILE = ((4, 8, 2), (2, 2, 8)), ((64, 1, 16), (32, 8, 256))
"""A thread-value layout of a 32 x 64 tile; the last extent grows, so that every call has another one."""

Tree = Any
"""An int-tuple, or a tuple of a shape and a stride."""
Case = Callable[[int], tuple[str, tuple[tuple[str, Tree], ...]]]
"""Maps the number of a call to the operation and its operands as ("layout" | "value", tree)."""


def installed() -> list[Peer]:
    found: list[Peer] = []
    for name in NAMES:
        try:
            found.append(peer(name))
        except LayoutError as error:
            print(f"skipped: {error}")
    return found


# -- fuzz ----------------------------------------------------------------------------------------------------


def fuzz(kinds: Sequence[Kind], pairs: int, seed: int, peers: list[Peer]) -> int:
    """Print one table; the number of Argus's faults."""
    faults = 0
    for kind in kinds:
        drawn = draws(kind, pairs, seed)
        for operation in OPERATIONS:
            rows = [tally(peer("argus"), operation, kind, drawn)]
            faults += rows[0].faults
            for library in peers:
                if operation in library.operations:
                    some = drawn[:TRACED_PAIRS] if library.name == "cute-dsl" else drawn
                    rows.append(tally(library, operation, kind, some))
            print(table(rows), flush=True)
            print()
    print(f"Argus: {faults} wrong, truncated, needlessly refused or undecided\n")
    return faults


# -- time ----------------------------------------------------------------------------------------------------


def _tile(call: int) -> Tree:
    (threads, (a, b, c)), strides = TILE
    return (threads, (a, b, c + call)), strides


def _rows(call: int) -> Tree:
    return (128, 64 + 16 * call), (64 + 16 * call, 1)


CASES: Mapping[str, Case] = {
    "composition (128,64):(64,1) o (8,16):(1,8)": lambda n: (
        "composition",
        (("layout", _rows(n)), ("layout", ((8, 16), (1, 8)))),
    ),
    "composition (32,64):(64,1) o TV": lambda n: (
        "composition",
        (("layout", ((32, 64 + 8 * n), (64 + 8 * n, 1))), ("layout", _tile(n))),
    ),
    "complement ((2,2),(2,2)):((1,4),(8,32)), 1024": lambda n: (
        "complement",
        (("layout", (((2, 2), (2, 2)), ((1, 4), (8, 32)))), ("value", 1024 + 64 * n)),
    ),
    "complement 4:2, 24": lambda n: ("complement", (("layout", (4, 2)), ("value", 24 + 8 * n))),
    "logical_divide (128,64):(64,1) by (32,16)": lambda n: (
        "logical_divide",
        (("layout", _rows(n)), ("value", (32, 16))),
    ),
    "zipped_divide (128,64):(64,1) by (32,16)": lambda n: (
        "zipped_divide",
        (("layout", _rows(n)), ("value", (32, 16))),
    ),
    "zipped_divide ((4,32),64):((1,256),4) by (32,16)": lambda n: (
        "zipped_divide",
        (("layout", (((4, 32 + 8 * n), 64), ((1, 256), 4))), ("value", (32, 16))),
    ),
    "tiled_divide (128,64):(64,1) by (32,16)": lambda n: (
        "tiled_divide",
        (("layout", _rows(n)), ("value", (32, 16))),
    ),
    "logical_product (8,8) x (4,4)": lambda n: (
        "logical_product",
        (("layout", ((8, 8), (1, 8))), ("layout", ((4, 4 + n), (1, 4)))),
    ),
    "right_inverse TV": lambda n: ("right_inverse", (("layout", _tile(n)),)),
    "left_inverse TV": lambda n: ("left_inverse", (("layout", _tile(n)),)),
    "coalesce 6 modes": lambda n: (
        "coalesce",
        (("layout", ((2, 4, 2, 4, 2, 4 + n), (1, 2, 16, 32, 256, 512))),),
    ),
    "L(37), 6 modes": lambda n: (
        "__call__",
        (("layout", ((2, 4, 2, 4, 2, 4 + n), (1, 2, 16, 32, 256, 512))), ("value", 37 + n)),
    ),
}


def _operands(build: Callable[..., Any], case: Case, call: int) -> tuple[Any, ...]:
    return tuple(build(*tree) if kind == "layout" else tree for kind, tree in case(call)[1])


def _function(library: ModuleType, operation: str) -> Callable[..., Any]:
    if operation == "__call__":
        return library.Layout.__call__
    return getattr(library, operation, None) or library.compose


def _spent(function: Callable[..., Any], arguments: list[tuple[Any, ...]]) -> float:
    """Microseconds per call, with garbage collection off as in `timeit`."""
    gc.collect()
    gc.disable()
    start = time.perf_counter()
    for given in arguments:
        function(*given)
    spent = time.perf_counter() - start
    gc.enable()
    return spent / len(arguments) * 1e6


def timed(libraries: Mapping[str, ModuleType], case: Case) -> dict[str, tuple[float, float]]:
    """Cold and warm microseconds by library, each the minimum of REPEATS interleaved runs."""
    best = dict.fromkeys(libraries, (math.inf, math.inf))
    for _ in range(REPEATS):
        for name, library in libraries.items():
            function = _function(library, case(0)[0])
            arguments = [_operands(library.Layout, case, call) for call in range(CALLS)]
            cold, warm = _spent(function, arguments), _spent(function, arguments)
            best[name] = min(best[name][0], cold), min(best[name][1], warm)
    return best


def times(modules: Mapping[str, ModuleType]) -> None:
    """Print the table; ratios are to the peer of the column."""
    libraries = {"argus": ours, **modules}
    heads = "".join(f"{name + ' us':>20}" for name in libraries)
    print(f"{'operation':48}{heads}" + "".join(f"{'/ ' + name:>18}" for name in modules) + f"{'argus warm us':>16}")
    ratios: dict[str, list[float]] = {name: [] for name in modules}
    for title, case in CASES.items():
        row = timed(libraries, case)
        for name in modules:
            ratios[name].append(row["argus"][0] / row[name][0])
        cold = "".join(f"{row[name][0]:>20.2f}" for name in libraries)
        relative = "".join(f"{ratios[name][-1]:>18.2f}" for name in modules)
        print(f"{title:48}{cold}{relative}{row['argus'][1]:>16.2f}")
    for name, each in ratios.items():
        mean = math.exp(sum(map(math.log, each)) / len(each))
        print(f"vs. {name}: geometric mean {mean:.2f}, largest ratio {max(each):.2f}, bar {BAR}")


def _importable() -> Iterator[tuple[str, ModuleType]]:
    for name, module in (("pycute", "pycute"), ("tensor-layouts", "tensor_layouts")):
        try:
            yield name, import_module(module)
        except ImportError as error:
            print(f"skipped: {name}: {error}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="?", choices=("fuzz", "time"), help="default: both")
    parser.add_argument("--pairs", type=int, default=200_000, help="draws of each kind")
    parser.add_argument("--kind", choices=KINDS, action="append", help="default: all kinds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--path", action="append", default=[], help="a folder with peers, such as cutlass/python")
    given = parser.parse_args()
    sys.path += given.path
    print(json.dumps({"python": platform.python_version(), "cpus": os.cpu_count(), "seed": given.seed}))
    if given.part != "fuzz":
        times(dict(_importable()))
        print()
    if given.part != "time" and fuzz(given.kind or KINDS, given.pairs, given.seed, installed()):
        sys.exit(1)


if __name__ == "__main__":
    main()
