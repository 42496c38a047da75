"""What `import argus` and each command of the command line load: a bound on it, so that starting stays quick."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

SHOW = "import json, sys, {name}; print(json.dumps(sorted(sys.modules)))"
ALWAYS = frozenset(("attr", "attrs", "cattrs", "ml_dtypes", "numpy", "platformdirs", "typing_extensions"))
OF_COMMANDS = frozenset(("click", "markupsafe", "resvg_py", "rich"))
"""Compilers, solvers' alternatives, models' clients, plots and pages load by use."""


def loaded(name: str) -> list[str]:
    """The modules of a fresh process after an import."""
    code = SHOW.format(name=name)
    done = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=True)  # noqa: S603 reason: our own code
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("name", "packages", "own", "all_of_them"),
    [("argus", ALWAYS, 520, 830), ("argus.cli.main", ALWAYS | OF_COMMANDS, 600, 985)],
)
def test_few_packages_and_modules_are_loaded(name: str, packages: frozenset[str], own: int, all_of_them: int) -> None:
    bare = set(loaded("json"))
    modules = [each for each in loaded(name) if each not in bare]
    others = {each.partition(".")[0] for each in modules} - sys.stdlib_module_names - {"argus"}
    assert {each for each in others if not each.startswith("_")} <= packages
    assert len([each for each in modules if each.partition(".")[0] == "argus"]) <= own
    assert len(modules) <= all_of_them
