"""Reads the knowledge base: one Markdown file per technique, with TOML front matter between lines of `+++`."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import attrs
from cattrs import ClassValidationError, Converter, transform_error

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.policy.technique import Technique

_FENCE = "+++"
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_READER = Converter(forbid_extra_keys=True)


def kb_folder() -> Path:
    """The folder of the knowledge base: inside the installed package, or at the root of the checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "kb"
    return installed if installed.is_dir() else package.parent / "kb"


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
    lines = text.splitlines()
    if not lines or lines[0] != _FENCE or _FENCE not in lines[1:]:
        raise _malformed(place, ["it has no front matter"], "start the file with TOML between two lines of `+++`")
    end = lines.index(_FENCE, 1)
    try:
        data = tomllib.loads("\n".join(lines[1:end]))
        found = _READER.structure({**data, "text": "\n".join(lines[end + 1 :]).strip()}, Technique)
    except tomllib.TOMLDecodeError as problem:
        raise _malformed(place, [str(problem)], "write front matter as TOML") from problem
    except ClassValidationError as problem:
        fields = ", ".join(each.name for each in attrs.fields(Technique) if each.name != "text")
        raise _malformed(place, transform_error(problem), f"a technique has the fields {fields}") from problem
    problems = list(_violations(found, name))
    if problems:
        raise _malformed(place, problems, "see the other files of the knowledge base")
    return found


def _violations(found: Technique, name: str) -> list[str]:
    """Violations that field types do not express."""
    problems: list[str] = []
    if found.name != name or not _NAME.fullmatch(name):
        problems.append(f"its name is `{found.name}`, but its file is `{name}.md`: use lower-case words with hyphens")
    effect = found.effect
    if not 0 < effect.low <= effect.likely <= effect.high:
        problems.append(f"its effect is {effect}, expected 0 < low <= likely <= high")
    empty = [each for each in ("title", "intent", "risk", "signature", "text") if not getattr(found, each).strip()]
    problems.extend(f"its {each} is empty" for each in empty)
    if not found.targets:
        problems.append("it names no target")
    return problems


def _malformed(place: str, problems: list[str], advice: str) -> ArgusError:
    first, *others = problems
    return ArgusError(
        Diagnostic("E902", "error", f"`{place}` is not a technique: {first}", notes=tuple(others), help=advice)
    )


def related_techniques(techniques: tuple[Technique, ...], words: str, target: str = "") -> tuple[Technique, ...]:
    """Techniques relevant to a text, best match first: by common words, each weighted by 1 / document frequency."""
    asked = set(_words(words))
    bags = {each.name: _words(f"{each.name} {each.title} {each.intent} {each.text}") for each in techniques}
    counts = {word: sum(word in bag for bag in bags.values()) for word in asked}
    scores = {name: sum(1 / counts[word] for word in asked & set(bag) if counts[word]) for name, bag in bags.items()}
    meant = [each for each in techniques if scores[each.name] > 0 and (not target or target in each.targets)]
    return tuple(sorted(meant, key=lambda each: (-scores[each.name], each.name)))


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]{2,}", text.lower())
