"""Diagnostics as text: one list of styled lines, which `coloured` prints in colour, and the same report as JSON.

Nothing here reads a file: `sources` maps a path to its text, or to None where there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import PurePath
from typing import Literal

from attrs import frozen

from argus.core.diagnostic import Diagnostic, Label, Severity
from argus.core.span import Frame, Span

Sources = Callable[[str], str | None]
Style = Literal["error", "warning", "unknown", "note", "message", "frame", "source", "primary", "secondary", "text"]
Line = tuple[tuple[Style, str], ...]

SCHEMA = "argus.diagnostic/1"


@frozen
class _Mark:
    """A label with a place: one underline of one source line."""

    frame: Frame
    text: str
    style: Literal["primary", "secondary"]


def render_plain(diagnostic: Diagnostic, sources: Sources, *, root: str = "") -> str:
    """The report as text without a final newline; paths below the directory `root` are shown relative to it."""
    lines = _lines(diagnostic, sources, root)
    return "\n".join("".join(text for _, text in line).rstrip() for line in lines)


def to_json(diagnostic: Diagnostic) -> dict[str, object]:
    """The report as JSON data of schema `argus.diagnostic/1`.

    Keys are never removed or given another meaning within a schema version. Lines count from 1 and
    columns from 0, the end is exclusive; `frames` run from the place outwards to its callers.
    """
    return {
        "schema": SCHEMA,
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "kernel": diagnostic.kernel,
        "primary": _label_json(diagnostic.primary),
        "secondary": [_label_json(label) for label in diagnostic.secondary],
        "facts": [{"name": name, "value": value} for name, value in diagnostic.facts],
        "notes": list(diagnostic.notes),
        "help": diagnostic.help,
        "page": diagnostic.page,
    }


def _label_json(label: Label) -> dict[str, object]:
    return {"text": label.text, "frames": [frame_json(frame) for frame in label.span.frames]}


def frame_json(frame: Frame) -> dict[str, object]:
    """One source line as JSON data."""
    return {
        "file": frame.file,
        "line": frame.line,
        "column": frame.column,
        "end_column": frame.end_column,
        "function": frame.function,
    }


def trimmed(diagnostic: Diagnostic, sources: Sources, root: str) -> Iterator[Line]:
    """The lines without spaces at their ends."""
    for line in _lines(diagnostic, sources, root):
        yield (*line[:-1], (line[-1][0], line[-1][1].rstrip()))


def _lines(diagnostic: Diagnostic, sources: Sources, root: str) -> Iterator[Line]:
    marks = tuple(_marks(diagnostic))
    gutter = " " * max((len(str(mark.frame.line)) for mark in marks), default=1)
    yield _headline(diagnostic.severity, diagnostic.code, diagnostic.message)
    for place, group in _by_file(marks, root):
        arrow = "-->" if diagnostic.primary.span.frame in {mark.frame for mark in group} else ":::"
        yield (("frame", f"{gutter}{arrow} "), ("text", place))
        yield from _excerpt(group, sources, gutter)
    for name, text in _remarks(diagnostic, root):
        yield from _remark(gutter, name, text)


def _headline(severity: Severity, code: str, message: str) -> Line:
    return ((severity, f"{severity}[{code}]"), ("message", f": {message}"))


def _marks(diagnostic: Diagnostic) -> Iterator[_Mark]:
    if diagnostic.primary.span.frame is not None:
        yield _Mark(diagnostic.primary.span.frame, diagnostic.primary.text, "primary")
    for label in diagnostic.secondary:
        if label.span.frame is not None:
            yield _Mark(label.span.frame, label.text, "secondary")


def _by_file(marks: tuple[_Mark, ...], root: str) -> Iterator[tuple[str, tuple[_Mark, ...]]]:
    """Marks grouped by file, each with the place of its first mark as given; in a group in order of lines."""
    for file in dict.fromkeys(mark.frame.file for mark in marks):
        group = [mark for mark in marks if mark.frame.file == file]
        first = group[0].frame
        place = f"{_shown(file, root)}:{first.line}:{first.column + 1}"
        yield place, tuple(sorted(group, key=lambda mark: (mark.frame.line, mark.frame.column)))


def _shown(file: str, root: str) -> str:
    path = PurePath(file)
    return str(path.relative_to(root)) if root and path.is_relative_to(root) else file


def _excerpt(marks: Iterable[_Mark], sources: Sources, gutter: str) -> Iterator[Line]:
    for number, group in groupby(marks, key=lambda mark: mark.frame.line):
        on_line = tuple(group)
        source = _source_line(sources(on_line[0].frame.file), number)
        if source is None:
            yield from (_bare(mark, gutter) for mark in on_line if mark.text)
            continue
        yield (("frame", f"{number:>{len(gutter)}} | "), ("source", source))
        for mark in on_line:
            yield (("frame", f"{gutter} | "), ("source", _margin(source, mark)), (mark.style, _underline(source, mark)))


def _source_line(text: str | None, number: int) -> str | None:
    lines = [] if text is None else text.splitlines()
    return lines[number - 1] if 0 < number <= len(lines) else None


def _bare(mark: _Mark, gutter: str) -> Line:
    """A label whose source text is not at hand."""
    return (("frame", f"{gutter} = "), ("text", f"line {mark.frame.line}: "), (mark.style, mark.text))


def _start(source: str, mark: _Mark) -> int:
    """The column of the mark, never inside the line's indentation."""
    return max(mark.frame.column, len(source) - len(source.lstrip()))


def _margin(source: str, mark: _Mark) -> str:
    """What stands left of the underline: as wide as the source there, tabs kept."""
    start = _start(source, mark)
    return "".join("\t" if letter == "\t" else " " for letter in source[:start].ljust(start))


def _underline(source: str, mark: _Mark) -> str:
    """Carets or dashes under the mark; to the end of the line where the mark ends on a later one."""
    start, end = _start(source, mark), mark.frame.end_column
    stop = min(end, len(source)) if end > start else len(source)
    sign = "^" if mark.style == "primary" else "-"
    return f"{sign * max(1, stop - start)} {mark.text}"


def _remarks(diagnostic: Diagnostic, root: str) -> Iterator[tuple[str, str]]:
    primary = diagnostic.primary
    if primary.span.frame is None and primary.text:
        yield "note", primary.text
    yield from (("called from", call) for call in _calls(primary.span, root))
    for label in diagnostic.secondary:
        if label.span.frame is not None and label.span.frames[1:] != primary.span.frames[1:]:
            yield from ((f"line {label.span.frame.line} called from", call) for call in _calls(label.span, root))
    if diagnostic.kernel:
        yield "kernel", diagnostic.kernel
    yield from diagnostic.facts
    yield from (("note", note) for note in diagnostic.notes)
    if diagnostic.help:
        yield "help", diagnostic.help
    yield "more", diagnostic.page


def _calls(span: Span, root: str) -> Iterator[str]:
    for frame in span.frames[1:]:
        yield f"{_shown(frame.file, root)}:{frame.line} in {frame.function}"


def _remark(gutter: str, name: str, text: str) -> Iterator[Line]:
    """`= name: text`, further lines of the text below its first."""
    head = f"{gutter} = "
    label = f"{name} " if name.endswith("called from") else f"{name}: "
    first, *rest = text.split("\n")
    yield (("frame", head), ("message", label), ("text", first))
    for line in rest:
        yield (("text", " " * len(head + label) + line),)
