"""Edits that make wrong twins of shipped kernels still find their text: what follows from them is proved nightly."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import cast

from attrs import astuple, has

import argus.kernels
from tests.kernels import test_decode, test_moe_cdna3

HERE = Path(__file__).parent
SOURCES = [path.read_text(encoding="utf-8") for path in Path(argus.kernels.__file__).parent.rglob("*.py")]


def parts_of(value: object) -> tuple[object, ...]:
    if isinstance(value, tuple):
        return cast(tuple[object, ...], value)
    return astuple(value, recurse=False) if has(type(value)) else ()


def edit_in(value: object) -> tuple[ModuleType | None, str] | None:
    """The module and the text that a value edits: (old, new), alone, behind a module, or flat behind it."""
    parts = parts_of(value)
    at = next((i for i, part in enumerate(parts) if isinstance(part, ModuleType)), None)
    module, behind = (None, parts) if at is None else (cast(ModuleType, parts[at]), parts[at + 1 :])
    pairs = (
        [behind] if at is None else [*map(parts_of, behind), tuple(part for part in behind if isinstance(part, str))]
    )
    match [pair for pair in pairs if len(pair) == 2 and all(isinstance(part, str) for part in pair)]:
        case [(str(old), _), *_]:
            return module, old
        case _:
            return None


def edits_of(tables: Mapping[str, object]) -> Iterator[tuple[str, ModuleType | None, str]]:
    """The edits of a module's tables: where they stand, the module that they edit if it is told, and the old text."""
    for table, each in tables.items():
        if isinstance(each, dict) and each is not test_decode.TWINS:
            for name, value in cast(dict[object, object], each).items():
                found = edit_in(value)
                if found is not None:
                    yield f"{table}[{name!r}]", *found


def stale(tables: Mapping[str, object]) -> Sequence[str]:
    """Edits whose text does not occur once in the module, or in no module of kernels if none is told."""

    def once(module: ModuleType | None, old: str) -> bool:
        texts = SOURCES if module is None else [inspect.getsource(module)]
        return any(text.count(old) == 1 for text in texts)

    return [where for where, module, old in edits_of(tables) if not once(module, old)]


def test_each_edit_finds_its_text_once() -> None:
    """`test_decode.TWINS` has the old text as its key; `attention_twins` has all of them as edits."""
    modules = [import_module(f"tests.kernels.{path.stem}") for path in sorted(HERE.glob("*.py"))]
    assert sum(len(list(edits_of(vars(module)))) for module in modules) > 1000
    assert {module.__name__: found for module in modules if (found := stale(vars(module)))} == {}


def test_an_edit_of_a_text_that_is_gone_is_found() -> None:
    module, _, new = test_moe_cdna3.OWN["no gate"]
    assert stale({"OWN": {"known": test_moe_cdna3.OWN["no gate"]}, "SIZES": {"of": (1, 2)}}) == []
    assert stale(
        {"OWN": {"behind": (module, "gone", new), "pair": (module, ("gone", new)), "alone": ("gone", new)}}
    ) == [f"OWN[{name!r}]" for name in ("behind", "pair", "alone")]
