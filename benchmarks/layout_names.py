"""Runs other layout libraries' own tests against Argus: `python benchmarks/layout_names.py NAME FOLDER`.

NAME: pycute or tensor-layouts. FOLDER: their tests, fetched by the user (`test/python/pycute` of NVIDIA/cutlass;
`tests` of facebookresearch/tensor-layouts); nothing fetched is part of Argus. Their names are put on top of
`argus.layout` by `benchmarks/peers/*_names.py`. The texts of exceptions are not compared, nor is the class where Argus
raises a LayoutError. Each failure must be listed with its reason in `benchmarks/peers/tensor_layouts_deviations.py`;
otherwise the command ends with 1. So it does where a listed test passes, or fails in another way than its reason says:
what is out of scope must fail for want of the name.
"""

from __future__ import annotations

import argparse
import json
import sys
from abc import ABC
from collections import Counter
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import ModuleType

import pytest
from peers import tensor_layouts_deviations, tensor_layouts_modules

from argus import layout as ours
from argus.layout import LayoutError

FILES = {
    "pycute": ("test_*.py",),
    "tensor-layouts": ("layouts.py", "composed.py", "tensor.py", "paper_examples.py", "external.py"),
}


class Outcomes:
    """A pytest plugin: the outcome of each test by name."""

    def __init__(self) -> None:
        self.passed: list[str] = []
        self.failed: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.passed and report.when == "call":
            self.passed.append(report.nodeid)
        elif report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            self.failed[report.nodeid] = crash.message if crash is not None else str(report.longrepr)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed[report.nodeid] = str(report.longrepr)


@contextmanager
def texts_not_compared() -> Generator[None]:
    """`pytest.raises` without the text, and content with a LayoutError, whatever class the other library raises."""
    plain = pytest.raises

    def raises(
        expected: type[Exception] | tuple[type[Exception], ...], *, match: str = ""
    ) -> AbstractContextManager[object]:
        del match
        return plain((*(expected if isinstance(expected, tuple) else (expected,)), LayoutError))

    pytest.raises = raises
    try:
        yield
    finally:
        pytest.raises = plain


class Integer(ABC):  # noqa: B024 reason: as theirs
    """pycute's: an int that is no bool."""

    @classmethod
    def __subclasshook__(cls, other: type) -> bool:
        return issubclass(other, int) and other is not bool


def install_pycute() -> None:
    module = ModuleType("pycute")
    module.__dict__.update({name: getattr(ours, name) for name in ours.__all__}, Integer=Integer)
    sys.modules["pycute"] = module


def run(name: str, folder: Path) -> Outcomes:
    """The outcomes of a library's tests with its names on top of Argus."""
    if name == "pycute":
        install_pycute()
    else:
        tensor_layouts_modules.install(folder)
    files = [str(path) for pattern in FILES[name] for path in sorted(folder.glob(pattern))]
    if not files:
        sys.exit(f"no tests of {name} in {folder}: expected {', '.join(FILES[name])}")
    outcomes = Outcomes()
    with texts_not_compared():
        pytest.main(["-q", "--tb=no", "-p", "no:cacheprovider", "-c", "/dev/null", "-W", "ignore", *files], [outcomes])
    return outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=FILES)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--all", action="store_true", help="list the deviations, with their reasons")
    given = parser.parse_args()
    outcomes = run(given.name, given.folder)
    known = tensor_layouts_deviations.KNOWN if given.name == "tensor-layouts" else {}
    kinds: Counter[str] = Counter()
    for test, message in sorted(outcomes.failed.items()):
        deviation = known.get(_short(test))
        lacking = "NotOfferedError" in message
        if deviation is None or lacking != (deviation.kind == "out of scope"):
            kinds["unlisted failure"] += 1
            print(f"FAILED {_short(test)}: {message.splitlines()[0][:200]}")
            continue
        kinds[deviation.kind] += 1
        if given.all:
            print(f"{deviation.kind}: {_short(test)}: {deviation.reason}")
    stale = [test for test in known if test not in {_short(each) for each in outcomes.failed}]
    for test in stale:
        print(f"listed, but passes or is not there: {test}")
    print(json.dumps({"passed": len(outcomes.passed), **dict(sorted(kinds.items()))}))
    if kinds["unlisted failure"] or stale:
        sys.exit(1)


def _short(test: str) -> str:
    """`file.py::test` without the folder."""
    return test.rsplit("/", 1)[-1]


if __name__ == "__main__":
    main()
