"""The site has a place for each page, in `mkdocs.yml`; `make docs` checks the rest with MkDocs itself."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
NAV = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
PLACES = re.findall(r"[:-] ([\w./-]+(?:\.md|/))$", NAV, re.MULTILINE)


def test_each_page_has_a_place() -> None:
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    folders = tuple(place for place in PLACES if place.endswith("/"))

    assert {page for page in pages if page not in PLACES and not page.startswith(folders)} == set()


def test_each_place_has_a_page() -> None:
    files = [each.replace(".md", ".ipynb") if each.startswith("notebooks/") else each for each in PLACES]

    assert [each for each in files if not each.startswith("source/") and not (DOCS / each).exists()] == []
    assert {each for each in files if each.startswith("notebooks/")} == {
        path.relative_to(DOCS).as_posix() for path in DOCS.glob("notebooks/*")
    }
    assert len(PLACES) == len(set(PLACES)) > 40


def test_a_page_of_the_cookbook_proves_runs_and_builds_its_files_for_both_targets() -> None:
    pages = sorted(path for path in (DOCS / "cookbook").glob("*.md") if path.name != "index.md")
    assert len(pages) >= 10
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert "```python\n# " in text, page.name
        for file in re.findall(r"^```python\n# (\w+\.py)$", text, re.MULTILINE):
            verified, ran = shown(text, f"argus verify {file}"), shown(text, f"argus run {file}")
            assert " proved" in verified
            assert not re.search(r"refuted|unknown|error\[", verified), page.name
            assert {": right, " in each for each in ran.split("$ argus")[1:]} == {True}, page.name
            assert all(f"_{config}" in ran for config in ("gfx942", "sm_90a")), page.name
            for target in ("gfx942", "sm_90a"):
                assert f"({target}): compiled" in shown(text, f"argus build {file} --target {target}"), page.name


def shown(text: str, command: str) -> str:
    """What a page shows of a command and those of the same beginning, each with its output."""
    found = re.findall(rf"^(\$ {re.escape(command)}.*?)(?=^\$ |^```)", text, re.MULTILINE | re.DOTALL)
    return "".join(found)
