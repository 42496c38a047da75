"""Reductions and scans over random layouts of bits: the text executed beside the interpreter's plan."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest

from argus.core.diagnostic import ArgusError
from argus.core.ir import Fold
from tests.emit import host
from tests.emit.test_folds import UNITS, executed, expected, fold, layout, small_integers

COUNT = 10
"""Folds of one seed, which are compiled together."""
CASES = [(target, seed) for target in UNITS for seed in range(8)]


def drawn(random: Random, unit: int) -> Fold:
    """A fold that is well formed: other draws are repeated."""
    while True:
        bits = random.randint(6, 10)
        rows = random.randint(0, bits)
        strides: list[int | None] = [1 << bit for bit in range(bits)]
        if random.random() < 0.6:
            random.shuffle(strides)
        lanes, repeated = random.randint(6, 7), random.choice([0, 0, 1, 2])
        threads, values = strides[: lanes - repeated], strides[lanes - repeated :]
        threads += [None] * repeated
        if random.random() < 0.5:
            random.shuffle(threads)
        op = random.choice(["add", "max", "min", "last"])
        keep = random.choice(["total", "total", "prefix"]) if op != "last" else "total"
        try:
            tv = layout((1 << rows, 1 << bits - rows), threads, [each or 0 for each in values])
            return fold(unit, tv, random.randint(0, 1), op, keep, random.choice(["thread", "warp", "warp"]))
        except (AssertionError, ValueError, ArgusError):
            continue


@pytest.mark.skipif(not host.available(), reason="no contexts of glibc here")
@pytest.mark.share(128)
@pytest.mark.parametrize(("target", "seed"), CASES)
def test_random_folds(target: str, seed: int, tmp_path: Path) -> None:
    random = Random(seed)  # noqa: S311 reason: the same folds in every run
    stmts = [drawn(random, UNITS[target]) for _ in range(COUNT)]
    inputs = [small_integers(stmt, place) for place, stmt in enumerate(stmts)]
    for stmt, values, found in zip(stmts, inputs, executed(stmts, inputs, tmp_path, target), strict=True):
        np.testing.assert_array_equal(found, expected(stmt, values, UNITS[target]), str(stmt.source.buffer.layout))
