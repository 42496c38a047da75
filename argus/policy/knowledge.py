"""The knowledge base: one technique a Markdown file, its front matter in TOML between lines of `+++`."""

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


def home() -> Path:
    """The folder of the knowledge base: beside the package as it was installed, or in the checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "kb"
    return installed if installed.is_dir() else package.parent / "kb"


def load(folder: Path | None = None) -> tuple[Technique, ...]:
    """All techniques of a folder, by name; of `home()` by default.

    Raises ArgusError: E901 where the folder has none or a file cannot be read, E902 for what is wrong within one.
    """
    place = home() if folder is None else folder
    paths = sorted(place.glob("*.md"))
    if not paths:
        message = f"`{place}` holds no techniques, expected Markdown files with front matter"
        raise ArgusError(Diagnostic("E901", "error", message, help="name the folder with --kb"))
    return tuple(parse(_read(path), path.stem, str(path)) for path in paths)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise ArgusError(
            Diagnostic("E901", "error", f"`{path}` cannot be read: {problem}", help="expected text in UTF-8")
        ) from problem


def parse(text: str, name: str, place: str) -> Technique:
    """The technique of a file's text. name: of the file without its ending. place: for the message.

    Raises ArgusError (E902).
    """
    lines = text.splitlines()
    if not lines or lines[0] != _FENCE or _FENCE not in lines[1:]:
        raise _wrong(place, ["it has no front matter"], "begin the file with TOML between two lines of `+++`")
    end = lines.index(_FENCE, 1)
    try:
        data = tomllib.loads("\n".join(lines[1:end]))
        found = _READER.structure({**data, "text": "\n".join(lines[end + 1 :]).strip()}, Technique)
    except tomllib.TOMLDecodeError as problem:
        raise _wrong(place, [str(problem)], "write front matter as TOML") from problem
    except ClassValidationError as problem:
        fields = ", ".join(each.name for each in attrs.fields(Technique) if each.name != "text")
        raise _wrong(place, transform_error(problem), f"a technique has the fields {fields}") from problem
    problems = list(_faults(found, name))
    if problems:
        raise _wrong(place, problems, "see the other files of the knowledge base")
    return found


def _faults(found: Technique, name: str) -> list[str]:
    """What the types of the fields do not say."""
    problems: list[str] = []
    if found.name != name or not _NAME.fullmatch(name):
        problems.append(f"its name is `{found.name}`, where its file is `{name}.md`: lower case words with hyphens")
    effect = found.effect
    if not 0 < effect.low <= effect.likely <= effect.high:
        problems.append(f"its effect is {effect}, where low <= likely <= high are expected, all above 0")
    empty = [each for each in ("title", "intent", "risk", "signature", "text") if not getattr(found, each).strip()]
    problems.extend(f"its {each} is empty" for each in empty)
    if not found.targets:
        problems.append("it names no target")
    return problems


def _wrong(place: str, problems: list[str], advice: str) -> ArgusError:
    first, *others = problems
    return ArgusError(
        Diagnostic("E902", "error", f"`{place}` is no technique: {first}", notes=tuple(others), help=advice)
    )


def related(techniques: tuple[Technique, ...], words: str, target: str = "") -> tuple[Technique, ...]:
    """Techniques that a text speaks of, the nearest first: by words in common, rare ones counting for more."""
    asked = set(_words(words))
    bags = {each.name: _words(f"{each.name} {each.title} {each.intent} {each.text}") for each in techniques}
    counts = {word: sum(word in bag for bag in bags.values()) for word in asked}
    scores = {name: sum(1 / counts[word] for word in asked & set(bag) if counts[word]) for name, bag in bags.items()}
    meant = [each for each in techniques if scores[each.name] > 0 and (not target or target in each.targets)]
    return tuple(sorted(meant, key=lambda each: (-scores[each.name], each.name)))


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]{2,}", text.lower())
