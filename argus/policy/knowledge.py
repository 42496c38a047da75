"""Reads the knowledge base: Markdown pages with TOML front matter between lines of `+++`.

`kb/*.md` are techniques with a transformation, `kb/practices/*.md` practices of families of kernels.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Protocol, TypeVar

import attrs
from cattrs import ClassValidationError, Converter, transform_error

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.policy.practice import Practice
from argus.policy.technique import Technique

PRACTICES = "practices"
"""The folder of practices inside that of the knowledge base."""
_FENCE = "+++"
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_READER = Converter(forbid_extra_keys=True)


class Page(Protocol):
    """What techniques and practices share."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def intent(self) -> str: ...
    @property
    def targets(self) -> tuple[str, ...]: ...
    @property
    def text(self) -> str: ...


KIND = TypeVar("KIND", Technique, Practice)
PAGE = TypeVar("PAGE", bound=Page)


def kb_folder() -> Path:
    """The folder of the knowledge base: inside the installed package, or at the root of the checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "kb"
    return installed if installed.is_dir() else package.parent / "kb"


def records_root() -> Path | None:
    """The root of the checkout, whose records practices name; None for an installed package."""
    root = kb_folder().parent
    return root if (root / "benchmarks" / "results").is_dir() and (root / "docs").is_dir() else None


def load_techniques(folder: Path | None = None) -> tuple[Technique, ...]:
    """All techniques of a folder (`home()` by default), sorted by name.

    Raises ArgusError: E901 if the folder has none or a file cannot be read, E902 for a malformed file.
    """
    place = kb_folder() if folder is None else folder
    paths = sorted(place.glob("*.md"))
    if not paths:
        message = f"`{place}` holds no techniques, expected Markdown files with front matter"
        raise ArgusError(Diagnostic("E901", "error", message, help="name the folder with --kb"))
    return tuple(parse_technique(_read(path), path.stem, str(path)) for path in paths)


def load_practices(folder: Path | None = None) -> tuple[Practice, ...]:
    """All practices of a knowledge base (`kb_folder()` by default), sorted by family and name; none if it has none.

    Raises ArgusError: E901 if a file cannot be read, E902 for a malformed file.
    """
    place = (kb_folder() if folder is None else folder) / PRACTICES
    found = (parse_practice(_read(path), path.stem, str(path)) for path in sorted(place.glob("*.md")))
    return tuple(sorted(found, key=lambda each: (each.family, each.name)))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise ArgusError(
            Diagnostic("E901", "error", f"`{path}` cannot be read: {problem}", help="expected text in UTF-8")
        ) from problem


def parse_technique(text: str, name: str, place: str) -> Technique:
    """Parse a technique. text: the file's. name: the file name without `.md`. place: shown in messages.

    Raises ArgusError (E902) for malformed text.
    """
    found = _structured(text, place, Technique)
    problems = list(_violations(found, name))
    if problems:
        raise _malformed(place, problems, "see the other files of the knowledge base")
    return found


def parse_practice(text: str, name: str, place: str) -> Practice:
    """Parse a practice. text: the file's. name: the file name without `.md`. place: shown in messages.

    Raises ArgusError (E902) for malformed text.
    """
    found = _structured(text, place, Practice)
    problems = list(_common_violations(found, name))
    empty = [each for each in ("applies", "loses") if not getattr(found, each).strip()]
    problems.extend(f"its {each} is empty" for each in empty)
    for row in found.experiments:
        if bool(row.quote) == bool(row.without and row.design):
            problems.append(f"its experiment of {row.shape} has neither or both of a quote and two designs of a table")
        if row.ratio <= 0:
            problems.append(f"its experiment of {row.shape} has the ratio {row.ratio}, expected one above 0")
    if problems:
        raise _malformed(place, problems, "see the other files of the knowledge base")
    return found


def _structured(text: str, place: str, kind: type[KIND]) -> KIND:
    """The front matter and text of a file as an object. Raises ArgusError (E902)."""
    lines = text.splitlines()
    if not lines or lines[0] != _FENCE or _FENCE not in lines[1:]:
        raise _malformed(place, ["it has no front matter"], "start the file with TOML between two lines of `+++`")
    end = lines.index(_FENCE, 1)
    try:
        data = tomllib.loads("\n".join(lines[1:end]))
        return _READER.structure({**data, "text": "\n".join(lines[end + 1 :]).strip()}, kind)
    except tomllib.TOMLDecodeError as problem:
        raise _malformed(place, [str(problem)], "write front matter as TOML") from problem
    except ClassValidationError as problem:
        fields = ", ".join(each.name for each in attrs.fields(kind) if each.name != "text")
        kind_name = kind.__name__.lower()
        raise _malformed(place, transform_error(problem), f"a {kind_name} has the fields {fields}") from problem


def _violations(found: Technique, name: str) -> list[str]:
    """Violations that field types do not express."""
    problems = list(_common_violations(found, name))
    effect = found.effect
    if not 0 < effect.low <= effect.likely <= effect.high:
        problems.append(f"its effect is {effect}, expected 0 < low <= likely <= high")
    problems.extend(f"its {each} is empty" for each in ("risk", "signature") if not getattr(found, each).strip())
    return problems


def _common_violations(found: Page, name: str) -> list[str]:
    problems: list[str] = []
    if found.name != name or not _NAME.fullmatch(name):
        problems.append(f"its name is `{found.name}`, but its file is `{name}.md`: use lower-case words with hyphens")
    problems.extend(f"its {each} is empty" for each in ("title", "intent", "text") if not getattr(found, each).strip())
    if not found.targets:
        problems.append("it names no target")
    return problems


def _malformed(place: str, problems: list[str], advice: str) -> ArgusError:
    first, *others = problems
    return ArgusError(
        Diagnostic(
            "E902", "error", f"`{place}` is not a page of the knowledge base: {first}", notes=tuple(others), help=advice
        )
    )


def related_techniques(pages: tuple[PAGE, ...], words: str, target: str = "") -> tuple[PAGE, ...]:
    """Pages relevant to a text, best match first: by common words, each weighted by 1 / document frequency."""
    asked = set(_words(words))
    bags = {each.name: _words(f"{each.name} {each.title} {each.intent} {each.text}") for each in pages}
    counts = {word: sum(word in bag for bag in bags.values()) for word in asked}
    scores = {name: sum(1 / counts[word] for word in asked & set(bag) if counts[word]) for name, bag in bags.items()}
    meant = [each for each in pages if scores[each.name] > 0 and (not target or target in each.targets)]
    return tuple(sorted(meant, key=lambda each: (-scores[each.name], each.name)))


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]{2,}", text.lower())
