"""Which wheels `pip install argus[EXTRA]` takes on other versions of Python, without building any: needs the network.

    python benchmarks/resolve_wheels.py [--python 3.12 3.13 3.14] [--extra torch docs]

For each version, and for the dependencies and each extra by itself, pip resolves and installs nothing; a package with
no wheel for that version on Linux, x86-64, makes the exit code 1. Where an index does not serve metadata apart from
wheels, pip fetches the wheels.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[1]
OLDEST, NEWEST = 5, 28
"""The minor versions of glibc 2 whose wheels pip takes on a system with the newest of them, such as RHEL 8."""
PLATFORMS = (
    *(f"manylinux_2_{minor}_x86_64" for minor in range(OLDEST, NEWEST + 1)),
    *(f"manylinux{year}_x86_64" for year in (1, 2010, 2014)),
)


def requirements() -> dict[str, list[str]]:
    """The requirements of Argus (under "argus") and of each extra; `dev` is pinned for one version of Python."""
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    return {"argus": project["dependencies"], **{name: each for name, each in extras.items() if name != "dev"}}


def resolve(version: str, wanted: Sequence[str]) -> list[str] | str:
    """The names of the wheels that pip takes, or its last line where it finds none."""
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        platforms = [part for each in PLATFORMS for part in ("--platform", each)]
        done = subprocess.run(  # noqa: S603 reason: pip of this interpreter
            [
                *(sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"),
                *("--only-binary", ":all:", "--python-version", version, *platforms),
                *("--target", folder, "--report", str(report), *wanted),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            return (done.stderr.strip().splitlines() or ["pip failed"])[-1]
        found: list[dict[str, Any]] = json.loads(report.read_text(encoding="utf-8"))["install"]
        return [str(each["download_info"]["url"]).rpartition("/")[2] for each in found]


def main() -> int:
    parser = argparse.ArgumentParser(description="Resolve the wheels of Argus's dependencies for versions of Python.")
    parser.add_argument("--python", nargs="+", default=["3.12", "3.13", "3.14"])
    parser.add_argument("--extra", nargs="+", choices=list(requirements()), default=list(requirements()))
    given = parser.parse_args()
    failed = False
    print(f"{'python':8}{'extra':12}{'wheels':>8}{'of this version':>17}")
    for version in given.python:
        for extra in given.extra:
            found = resolve(version, requirements()[extra])
            if isinstance(found, str):
                failed = True
                print(f"{version:8}{extra:12}  {found}")
                continue
            own = sum(f"-cp{version.replace('.', '')}-" in each for each in found)
            print(f"{version:8}{extra:12}{len(found):8}{own:17}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
