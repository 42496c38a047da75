"""Names that moved work for one version, warn at the caller's line, and must be gone after it."""

from __future__ import annotations

import re
import warnings
from importlib import import_module
from pathlib import Path

import pytest

import argus
from argus import language
from argus.cli.main import main
from argus.deprecated import ALIASES, Alias, moved

ROOT = Path(__file__).parents[1]
KERNEL = """\
from argus.language import *

@kernel(target=sm_90a, threads=32)
def copied(A: Tensor["N", f32], B: Tensor["N", f32]):
    begin_late()
    copy(load(A.tile((32,), (0,)), spread((32,), threads=32, vector=1), edge=0), B.tile((32,), (0,)), edge=0)
"""


def version(text: str) -> tuple[int, ...]:
    assert re.fullmatch(r"\d+\.\d+\.\d+", text)
    return tuple(map(int, text.split(".")))


@pytest.mark.parametrize("alias", ALIASES, ids=lambda alias: alias.old)
def test_an_alias_works_for_one_version(alias: Alias) -> None:
    major, minor, _ = version(alias.since)

    assert version(alias.removed) in ((major, minor + 1, 0), (major + 1, 0, 0))
    assert version(alias.since) <= version(argus.__version__), "a name moves in a version that exists"
    assert version(argus.__version__) < version(alias.removed), (
        f"{argus.__version__} is out: take `{alias.old}` out of ALIASES, `__all__` and the imports for type checkers"
    )


@pytest.mark.parametrize("alias", ALIASES, ids=lambda alias: alias.old)
def test_an_alias_is_no_current_name(alias: Alias) -> None:
    home, _, old = alias.old.rpartition(".")
    module = import_module(home)

    assert old not in vars(module), "a name that is there is not looked up among those that moved"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        assert getattr(module, old).__name__ == alias.new.rpartition(".")[2]


def test_a_function_warns_at_the_line_that_calls_it(tmp_path: Path) -> None:
    path = tmp_path / "late.py"
    path.write_text(KERNEL, encoding="utf-8")
    scope: dict[str, object] = {"__name__": "late"}
    with warnings.catch_warnings(record=True) as imported:
        warnings.simplefilter("always")
        exec(compile(KERNEL, str(path), "exec"), scope)  # noqa: S102 reason: as an import
    with warnings.catch_warnings(record=True) as called:
        warnings.simplefilter("always")
        kernel = scope["copied"]
        assert isinstance(kernel, language.Template)
        traced = kernel.trace()

    assert not imported
    assert [(each.category, each.filename, each.lineno) for each in called] == [(DeprecationWarning, str(path), 5)]
    assert traced.body[0].span.frames[0].line == 5


@pytest.mark.parametrize(
    ("module", "new"), [("argus", "argus.Budget"), ("argus.layout", "argus.layout.Layout")], ids=["argus", "layout"]
)
def test_anything_else_warns_at_the_line_that_reads_it(monkeypatch: pytest.MonkeyPatch, module: str, new: str) -> None:
    alias = Alias(f"{module}.Elsewhere", new, "0.1.0", "0.2.0")
    monkeypatch.setattr(moved, "__defaults__", ((alias,),))

    with pytest.warns(DeprecationWarning, match="is called") as read:
        found = import_module(module).Elsewhere
    with pytest.warns(DeprecationWarning, match="is called") as imported:
        exec(compile(f"from {module} import Elsewhere", "user.py", "exec"), {})  # noqa: S102 reason: as a user's file

    assert found is getattr(import_module(module), new.rpartition(".")[2])
    assert [(each.filename, str(each.message)) for each in read] == [(__file__, alias.message)]
    assert {each.filename for each in imported} == {"user.py"}


@pytest.mark.parametrize("module", ["argus", "argus.language", "argus.layout"])
def test_names_that_never_were_are_refused(module: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'nothing'"):
        _ = import_module(module).nothing
    with pytest.raises(AttributeError, match="no attribute"):
        moved(module, "begin")


def test_the_command_line_shows_the_warning(tmp_path: Path) -> None:
    path = tmp_path / "late.py"
    path.write_text(KERNEL, encoding="utf-8")
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("ignore")  # as Python does for files other than the main script
        main(["verify", str(path)])

    assert {(each.filename, each.lineno, str(each.message)) for each in shown} == {(str(path), 5, ALIASES[0].message)}


def test_the_reference_lists_the_names_that_moved() -> None:
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")

    for alias in ALIASES:
        assert f"| `{alias.old}` | `{alias.new}` | {alias.since} | {alias.removed} |" in page
