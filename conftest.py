"""Tiers of tests (`--tier`), and how many examples Hypothesis tries in each: "Tiers" in CONTRIBUTING.md."""

from __future__ import annotations

import gc
import os
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings

from tests.tiers import TIERS, commit, drawn

_YOUNG = 20_000
"""New objects between two passes of the collector, at least: tests make few cycles."""

# Ahead of NumPy: the interpreter's products are so small that threads would spend their time in waiting for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A deadline measures the machine, not the code: a shared runner would fail at random.
settings.register_profile("default", deadline=None, derandomize=True, max_examples=20)
settings.register_profile("all", deadline=None, derandomize=True, max_examples=100)
settings.register_profile("fuzz", deadline=None, max_examples=20_000, print_blob=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--tier",
        choices=TIERS,
        default=TIERS[0],
        help="default: without nightly tests, and with a share of the cases of large tests; all: every test",
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
    """Leave out what the default tier does not run. A test that is named on the command line (`::`) always runs."""
    if config.getoption("--tier") != "default" or any("::" in str(arg) for arg in config.args):
        return
    kept = _of_default(items, config.rootpath)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def _of_default(items: list[pytest.Item], root: Path) -> set[pytest.Item]:
    kept: set[pytest.Item] = set()
    groups: dict[tuple[str, int], list[tuple[str, pytest.Item]]] = defaultdict(list)
    for item in items:
        share = item.get_closest_marker("share")
        if item.get_closest_marker("nightly") is not None:
            continue
        if share is None:
            kept.add(item)
        else:
            group = share.kwargs.get("among", item.nodeid.partition("[")[0])
            groups[group, share.args[0]].append((item.nodeid, item))
    seed = commit(root)
    return kept.union(*(drawn(cases, one_in, seed) for (_, one_in), cases in groups.items()))
