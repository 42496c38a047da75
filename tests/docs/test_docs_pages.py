from __future__ import annotations

import re
from pathlib import Path

import pytest

from argus.core.diagnostic import Diagnostic
from argus.core.error_codes import ENTRIES, entry
from argus.core.invariants import DOMAINS, INVARIANTS, invariant

ROOT = Path(__file__).parents[2]
TITLES = {item.code: item.title for item in ENTRIES} | {item.id: item.title for item in INVARIANTS}


def test_codes_and_pages_match() -> None:
    pages = {
        path.relative_to(ROOT).as_posix()
        for folder in ("errors", "invariants")
        for path in (ROOT / "docs" / folder).iterdir()
    }

    assert {Diagnostic(code, "error", "").page for code in TITLES} == pages


@pytest.mark.parametrize("code", TITLES)
def test_a_page_has_its_title_and_sections_with_text(code: str) -> None:
    text = (ROOT / Diagnostic(code, "error", "").page).read_text(encoding="utf-8")
    sections = re.split(r"^## (.+)$", text, flags=re.MULTILINE)[1:]
    named = dict(zip(sections[::2], sections[1::2], strict=True))

    assert text.startswith(f"# {code}: {TITLES[code]}\n")
    assert {"What it says", "Why it matters"} < named.keys()
    assert {"Example", "Where it applies"} & named.keys()
    assert all(body.strip() for body in named.values())


def test_codes_are_unique_and_found_by_name() -> None:
    assert len(TITLES) == len(ENTRIES) + len(INVARIANTS)
    assert [item.id for item in INVARIANTS] == [f"I{number}" for number in range(1, len(INVARIANTS) + 1)]
    assert all(entry(item.code) is item for item in ENTRIES)
    assert all(invariant(item.id) is item and item.domain in DOMAINS for item in INVARIANTS)


def test_pages_state_what_the_tables_state() -> None:
    for item in INVARIANTS:
        assert item.statement in (ROOT / "docs" / "invariants" / item.page).read_text(encoding="utf-8")
    for item in ENTRIES:
        assert item.explanation in (ROOT / "docs" / "errors" / f"{item.code}.md").read_text(encoding="utf-8")


def test_every_code_named_in_the_package_is_catalogued() -> None:
    literal = re.compile(r'"(E\d{3}|I\d{1,2})"')
    named = {
        code for path in (ROOT / "argus").rglob("*.py") for code in literal.findall(path.read_text(encoding="utf-8"))
    }

    assert named <= TITLES.keys()
