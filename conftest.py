"""Tiers of tests (`--tier`), and how many examples Hypothesis tries in each: "Tiers" in CONTRIBUTING.md."""

from __future__ import annotations

import gc
import os
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import cast

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings

from tests.tiers import TIERS, Tier, commit, drawn, few_of, share_of

_YOUNG = 20_000
"""New objects between two passes of the collector, at least: tests make few cycles."""

# Ahead of NumPy: the interpreter's products are so small that threads would spend their time in waiting for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A deadline measures the machine, not the code: a shared runner would fail at random.
settings.register_profile("default", deadline=None, derandomize=True, max_examples=20)
for _tier in TIERS[1:]:
    settings.register_profile(_tier, deadline=None, derandomize=True, max_examples=100)
settings.register_profile("fuzz", deadline=None, max_examples=20_000, print_blob=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--tier",
        choices=TIERS,
        default=TIERS[0],
        help="default: without nightly tests, and with a share of the cases of large tests; all: all tests, with 8 "
        "times that share and few cases of nightly ones; every: each case",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Before Hypothesis reads its own options, of which `--hypothesis-profile` has the last word."""
    settings.load_profile(str(config.getoption("--tier")))
    gc.disable()  # until all tests are collected: what they import lives to the end


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """The collector passes over what is there by now: its passes over that were a third of collecting the tests."""
    gc.freeze()
    gc.set_threshold(_YOUNG, *gc.get_threshold()[1:])
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Python modules without examples are not searched for any: few have some, and each worker searches all."""
    found = yield
    if not any(isinstance(each, DoctestModule) for each in found) or ">>>" in file_path.read_text(encoding="utf-8"):
        return found
    return [each for each in found if not isinstance(each, DoctestModule)]


def pytest_report_header(config: pytest.Config) -> str:
    return f"tier: {config.getoption('--tier')}, shares drawn by commit {commit(config.rootpath)[:12] or '(none)'}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the tier does not run. A test that is named on the command line (`::`) always runs."""
    tier = cast("Tier", config.getoption("--tier"))
    if tier == "every" or any("::" in str(arg) for arg in config.args):
        return
    kept = _of_tier(items, tier, commit(config.rootpath))
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def _of_tier(items: list[pytest.Item], tier: Tier, seed: str) -> set[pytest.Item]:
    kept: set[pytest.Item] = set()
    groups: dict[tuple[str, int | None, float], list[tuple[str, pytest.Item]]] = defaultdict(list)
    for item in items:
        nightly, share = item.get_closest_marker("nightly"), item.get_closest_marker("share")
        if nightly is not None and tier == "default":
            continue
        mark = share if nightly is None else nightly
        if mark is None:
            kept.add(item)
            continue
        drawn_from = mark.kwargs.get("among", item.nodeid.partition("[")[0])
        one_in, least = share_of(mark.args[0], tier) if nightly is None else (next(iter(mark.args), None), 1.0)
        groups[drawn_from, one_in, least].append((item.nodeid, item))
    return kept.union(
        *(drawn(cases, one_in or few_of(len(cases)), seed, least) for (_, one_in, least), cases in groups.items())
    )
