"""The public names, with signatures, are those of the stored list; the version is the same everywhere."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import argus

ROOT = Path(__file__).parents[1]
MODULES = (
    "argus.language",
    "argus.layout",
    "argus.testing.implementations",
    "argus.testing.laws",
    "argus.testing.operands",
    "argus.testing.strategies",
)


def public(name: str) -> Iterator[str]:
    """The names that a module offers: those of `__all__`, else those that it defines."""
    module = import_module(name)
    names = getattr(module, "__all__", None) or [
        each for each, value in vars(module).items() if each[0] != "_" and getattr(value, "__module__", "") == name
    ]
    for each in sorted(names):
        yield f"{name}.{each}{shape(getattr(module, each))}"
        if inspect.isclass(getattr(module, each)):
            yield from methods(f"{name}.{each}", getattr(module, each))


def methods(name: str, kind: type) -> Iterator[str]:
    for each, value in sorted(vars(kind).items()):
        if each[0] != "_" and not inspect.ismemberdescriptor(value):
            yield f"{name}.{each}{shape(getattr(value, '__func__', value))}"


def shape(value: object) -> str:
    """The parameters of a function by name, order and kind; types and defaults may change freely."""
    if isinstance(value, type) or not callable(value):
        return ""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    plain = [
        each.replace(annotation=each.empty, default=each.empty if each.default is each.empty else ...)
        for each in found.parameters.values()
    ]
    return re.sub(
        r"=\s*Ellipsis|= ?\.\.\.", "=...", str(found.replace(parameters=plain, return_annotation=found.empty))
    )


def test_the_public_api(golden: Callable[[str], None]) -> None:
    names = [f"argus.{name}" for name in sorted(argus.__all__)]

    golden("\n".join([*names, *[line for module in MODULES for line in public(module)]]) + "\n")


def test_one_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    newest = re.search(r"^## (\S+?),", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)

    assert newest is not None
    assert newest[1] == project["version"] == argus.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", argus.__version__)
