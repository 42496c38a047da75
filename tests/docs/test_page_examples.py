"""The Python on the pages of the site runs, and each kernel in it is traced; foreign code there is marked `py`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from argus import language
from argus.deprecated import ALIASES
from argus.language import ProgramTemplate, Template
from tests.docs.execution import executed

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [
    path.relative_to(DOCS).as_posix() for name in ("language", "start") for path in sorted((DOCS / name).glob("*"))
]
REFERENCE = [page for page in PAGES if page.startswith("language/")]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CURRENT = set(language.__all__) - {alias.old.rpartition(".")[2] for alias in ALIASES}
NAMED = re.compile(r"^::: argus\.language\.(\w+)$", re.MULTILINE)
ROW = re.compile(r"^\| (`\w+`(?:, `\w+`)*) \|", re.MULTILINE)
"""Constants have rows in tables: they have no docstring."""


def blocks(page: str) -> Iterator[tuple[str, str]]:
    """The examples of a page with a file name for messages; on a page, each sees the names of those before it."""
    text = (DOCS / page).read_text(encoding="utf-8")
    for number, block in enumerate(BLOCK.finditer(text), 1):
        yield f"<{page}, example {number}>", block[1]


def run(page: str) -> list[Template | ProgramTemplate]:
    """Executes the examples of a page and returns the kernels that they define."""
    return [each for each in vars(executed(blocks(page))).values() if isinstance(each, (Template, ProgramTemplate))]


@pytest.mark.share(4)
@pytest.mark.parametrize("page", PAGES)
def test_examples_of_a_page_run_and_are_traced(page: str) -> None:
    for each in run(page):
        for config in each.configs or (None,):
            assert each.trace(config)


def test_the_reference_has_each_name_of_the_language_once() -> None:
    text = "".join((DOCS / page).read_text(encoding="utf-8") for page in REFERENCE)

    listed = [name for row in ROW.findall(text) for name in re.findall(r"\w+", row)]

    assert sorted({*NAMED.findall(text), *listed}) == sorted(CURRENT)
    assert len(NAMED.findall(text)) == len(set(NAMED.findall(text)))


def test_the_reference_uses_each_name_in_an_example() -> None:
    used = {word for page in REFERENCE for _, code in blocks(page) for word in re.findall(r"\w+", code)}

    assert CURRENT - used == set()
