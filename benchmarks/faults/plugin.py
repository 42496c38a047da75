"""A pytest plugin (`-p faults.plugin`) that writes each test's seconds and outcome as a line of JSON."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest

Report = pytest.CollectReport
TIMES = "ARGUS_FAULT_TIMES"
_seconds: dict[str, float] = defaultdict(float)
_failed: set[str] = set()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Report, Report]:
    """What a test file runs when it is imported counts as seen by all of its tests."""
    os.environ["PYTEST_CURRENT_TEST"] = f"{collector.nodeid} (collect)"
    try:
        return (yield)
    finally:
        os.environ.pop("PYTEST_CURRENT_TEST", None)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Called for each phase of a test, also in the process that distributes them."""
    _seconds[report.nodeid] += report.duration
    if report.failed:
        _failed.add(report.nodeid)
    if report.when == "teardown" and not os.environ.get("PYTEST_XDIST_WORKER") and os.environ.get(TIMES):
        row = {"test": report.nodeid, "seconds": round(_seconds[report.nodeid], 3), "failed": report.nodeid in _failed}
        with Path(os.environ[TIMES]).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
