"""Render diagnostics as styled lines of text, and as JSON.

Nothing here reads a file: `sources` maps a path to its text, or to None if it is not available.
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
class _Underline:
    """A label with a source position, drawn as an underline."""

    frame: Frame
    text: str
    style: Literal["primary", "secondary"]


def render_plain(diagnostic: Diagnostic, sources: Sources, *, root: str = "") -> str:
    """The diagnostic as text without a final newline. Paths below the directory `root` are relative to it."""
    lines = _lines(diagnostic, sources, root)
    return "\n".join("".join(text for _, text in line).rstrip() for line in lines)


def to_json(diagnostic: Diagnostic) -> dict[str, object]:
    """The diagnostic as JSON data of schema `argus.diagnostic/1`.

    Within a schema version no key is removed or changes its meaning. Lines count from 1, columns from 0, ends are
    exclusive. `frames` go from the innermost call to the outermost.
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
    """The styled lines without trailing spaces."""
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


def _marks(diagnostic: Diagnostic) -> Iterator[_Underline]:
    if diagnostic.primary.span.frame is not None:
        yield _Underline(diagnostic.primary.span.frame, diagnostic.primary.text, "primary")
    for label in diagnostic.secondary:
        if label.span.frame is not None:
            yield _Underline(label.span.frame, label.text, "secondary")


def _by_file(marks: tuple[_Underline, ...], root: str) -> Iterator[tuple[str, tuple[_Underline, ...]]]:
    """Labels grouped by file, with the position of the file's first label; sorted by line within a file."""
    for file in dict.fromkeys(mark.frame.file for mark in marks):
        group = [mark for mark in marks if mark.frame.file == file]
        first = group[0].frame
        place = f"{_shown(file, root)}:{first.line}:{first.column + 1}"
        yield place, tuple(sorted(group, key=lambda mark: (mark.frame.line, mark.frame.column)))


def _shown(file: str, root: str) -> str:
    path = PurePath(file)
    return str(path.relative_to(root)) if root and path.is_relative_to(root) else file


def _excerpt(marks: Iterable[_Underline], sources: Sources, gutter: str) -> Iterator[Line]:
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


def _bare(mark: _Underline, gutter: str) -> Line:
    """A label without source text."""
    return (("frame", f"{gutter} = "), ("text", f"line {mark.frame.line}: "), (mark.style, mark.text))


def _start(source: str, mark: _Underline) -> int:
    """First column of the underline, never inside the line's indentation."""
    return max(mark.frame.column, len(source) - len(source.lstrip()))


def _margin(source: str, mark: _Underline) -> str:
    """Padding to the left of the underline, with the source's tabs."""
    start = _start(source, mark)
    return "".join("\t" if letter == "\t" else " " for letter in source[:start].ljust(start))


def _underline(source: str, mark: _Underline) -> str:
    """Carets or dashes under the label; up to the end of the line if the label ends on a later one."""
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
    """`= name: text`, with continuation lines aligned."""
    head = f"{gutter} = "
    label = f"{name} " if name.endswith("called from") else f"{name}: "
    first, *rest = text.split("\n")
    yield (("frame", head), ("message", label), ("text", first))
    for line in rest:
        yield (("text", " " * len(head + label) + line),)
