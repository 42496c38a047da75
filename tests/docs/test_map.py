"""README, CONTRIBUTING and docs/ name what exists: paths, definitions, links, and the packages in their order."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from argus import language
from argus.deprecated import ALIASES

ROOT = Path(__file__).parents[2]
WITH_PATHS = ("README.md", "CONTRIBUTING.md", "docs/tour.md", "docs/glossary.md")
PAGES = tuple(
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
)
TOP = "argus|benchmarks|docs|examples|kb|property_tests|tests"
PATH = re.compile(rf"(?:(?:{TOP})/[\w./{{}},-]*|[\w/-]+\.(?:py|md|toml))(?:::\w+)?")
HOLE = re.compile(r"\b[A-Z]{4,}\.")
"""Of a path that stands for several, such as TARGET.json."""
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
FILES = {"__main__", "deprecated", "language"}
CURRENT = set(language.__all__) - {alias.old.rpartition(".")[2] for alias in ALIASES}
"""Layers of the import contract that are files, not folders."""
MOST_LINES = 200


def prose(page: str) -> str:
    """The text of a page without its code blocks."""
    return FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))


def named_paths(page: str) -> list[str]:
    """What stands between backticks and is a path from the project's root, braces expanded."""
    quoted = re.findall(r"`([^`\n]+)`", prose(page))
    return [path for each in quoted if PATH.fullmatch(each) and not HOLE.search(each) for path in expanded(each)]


def expanded(path: str) -> list[str]:
    braces = re.search(r"\{([\w,]+)\}", path)
    if braces is None:
        return [path]
    before, after = path[: braces.start()], path[braces.end() :]
    return [each for choice in braces[1].split(",") for each in expanded(before + choice + after)]


@pytest.mark.parametrize("page", WITH_PATHS)
def test_paths_and_definitions_exist(page: str) -> None:
    assert [each for each in named_paths(page) if not exists(each)] == []


def test_paths_from_the_root_exist() -> None:
    """These pages also name files of their readers, and files of a folder that they have named before."""
    others = [page for page in PAGES if page not in WITH_PATHS]
    paths = [(page, each) for page in others for each in named_paths(page) if re.match(rf"(?:{TOP})/", each)]

    assert [(page, each) for page, each in paths if not (ROOT / each.partition("::")[0]).exists()] == []


def exists(name: str) -> bool:
    """Whether `path`, or `path::definition`, is there; a folder has a slash at its end."""
    path, _, definition = name.partition("::")
    if not (ROOT / path).exists() or (ROOT / path).is_dir() is not path.endswith("/"):
        return False
    if not definition:
        return True
    text = (ROOT / path).read_text(encoding="utf-8")
    return re.search(rf"^(?:def {definition}\(|class {definition}\b|{definition}\b.*=)", text, re.MULTILINE) is not None


def test_pages_name_paths() -> None:
    assert len(named_paths("docs/tour.md")) > 80
    assert len(named_paths("CONTRIBUTING.md")) > 20


# -- packages ------------------------------------------------------------------------------------------------


@cache
def contract() -> list[str]:
    """The packages of argus/ in the order of the import contract, importers first."""
    data = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = next(
        each["layers"] for each in data["tool"]["importlinter"]["contracts"] if each["name"].startswith("fifteen")
    )
    return [name for layer in layers for name in layer.split(" | ") if name not in FILES]


def test_the_contract_names_the_folders_of_argus() -> None:
    assert sorted(contract()) == sorted(path.parent.name for path in (ROOT / "argus").glob("*/__init__.py"))


def test_the_map_has_one_row_per_package_in_the_order_of_the_contract() -> None:
    rows = re.findall(r"^\| `argus/(\w+)/` \| \S.* \|$", prose("CONTRIBUTING.md"), re.MULTILINE)

    assert rows == contract()


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= MOST_LINES


# -- links ---------------------------------------------------------------------------------------------------


def test_links_lead_somewhere() -> None:
    links = [(page, each) for page in PAGES for each in LINK.findall(CODE.sub("", prose(page)))]
    ours = [(page, each) for page, each in links if "://" not in each and not each.startswith("mailto:")]

    assert [(page, each) for page, each in ours if not leads_somewhere(page, each)] == []


def leads_somewhere(page: str, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (ROOT / page).parent / path if path else ROOT / page
    return target.exists() and (not anchor or anchor in anchors(target.resolve()))


@cache
def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts make them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.replace("`", "")) for heading in headings)
    return {heading.lower().replace(" ", "-") for heading in plain}


def test_every_page_is_linked_from_readme() -> None:
    linked = {path.partition("#")[0] for path in LINK.findall(prose("README.md"))}
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md")}

    assert pages - linked == set()


def test_the_language_page_lists_every_name_of_the_language() -> None:
    quoted = set(re.findall(r"`(\w+)`", prose("docs/language.md")))

    assert CURRENT - quoted == set()


# -- words ---------------------------------------------------------------------------------------------------


def test_the_glossary_says_where_each_word_comes_from() -> None:
    rows = [line.strip("|").split(" | ") for line in prose("docs/glossary.md").splitlines() if line.startswith("| **")]
    words = [word.strip(" *").lower() for word, *_ in rows]

    assert all(len(row) == 3 for row in rows)
    assert words == sorted(words)
    assert [row for row in rows if not row[2].strip() or "Argus" in row[2]] == []
