"""Strictly parses the output of the process that ran an untrusted text: kernels, or a diagnostic of the text.

The output is untrusted. A kernel is checked like any kernel that is read from data. A diagnostic must have a known
code; its texts are reduced to printable characters, and its locations to places in the text itself.
"""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import Any, cast

from attrs import fields, frozen

from argus.core.diagnostic import ArgusError, Diagnostic, Label
from argus.core.error_codes import ENTRIES
from argus.core.ir import Kernel, Program
from argus.core.serde import MalformedError, read
from argus.core.span import Frame, Span
from argus.runtime.sandbox.mounts import SCRATCH
from argus.verifier.loader import Exported

ELSEWHERE = "<elsewhere>"
"""The file name for locations outside the text: a report would quote lines from any other file named there."""
_MOST_LINES = 40
_LONGEST = 2000
_CODES = {each.code for each in ENTRIES}


@frozen
class ParsedOutput:
    """The kernels that a text exports."""

    exported: tuple[Exported, ...]


def parse_output(data: bytes, file: str) -> ParsedOutput:
    """Parse the output of `trace_kernels`. file: the name of the text, or its path outside the sandbox.

    Raises ArgusError: E944 for empty and E945 for malformed output, else the diagnostic of the text or its kernels.
    """
    try:
        given: object = json.loads(data)
        if not isinstance(given, dict):
            raise MalformedError("expected an object")
        fields = cast("dict[str, Any]", given)
        if set(fields) == {"diagnostic"}:
            raise ArgusError(_diagnostic(fields["diagnostic"], file))
        if set(fields) != {"document", "exported"}:
            raise MalformedError("expected a document and what it exports")
        return ParsedOutput(_exported(fields, file))
    except (ValueError, RecursionError) as problem:
        raise ArgusError(_malformed(data, problem)) from None


def _malformed(data: bytes, problem: Exception) -> Diagnostic:
    if not data:
        message = "the process that ran the text ended without having traced a kernel"
        repair = "remove code that ends or replaces the process (`sys.exit`, `os._exit`, `exec`)"
        return Diagnostic("E944", "error", message, help=repair)
    why = str(problem) if isinstance(problem, MalformedError) else f"it is not JSON ({type(problem).__name__})"
    message = "the output of the process that ran the text is not a kernel that tracing produces"
    repair = "write a kernel with `argus.language` alone, and do not modify Argus or its output"
    return Diagnostic("E945", "error", message, facts=(("found", _clean(why)),), help=repair)


def _exported(fields: dict[str, Any], file: str) -> tuple[Exported, ...]:
    document, listed = fields["document"], fields["exported"]
    _localise(document, file)
    things = read(document)
    if not isinstance(listed, list) or not listed or len(cast("list[object]", listed)) > len(things):
        raise MalformedError("expected a list of exports")
    found = tuple(_one(each, things) for each in cast("list[object]", listed))
    if len({each.name for each in found}) != len(found):
        raise MalformedError("two kernels have the same name")
    return found


def _one(entry: object, things: tuple[Kernel | Program, ...]) -> Exported:
    if not isinstance(entry, dict) or set(cast("dict[str, Any]", entry)) != {"name", "kernel", "program", "launch"}:
        raise MalformedError("expected an export with a name, a kernel, a program and a launch")
    given = cast("dict[str, Any]", entry)
    kernel = _thing(given["kernel"], things)
    program = None if given["program"] is None else _thing(given["program"], things)
    launch, name = given["launch"], given["name"]
    if not isinstance(kernel, Kernel) or not isinstance(name, str) or name != kernel.name:
        raise MalformedError("an export is not a kernel, or its name is not the kernel's")
    if program is None:
        return Exported(name, kernel)
    if not isinstance(program, Program) or type(launch) is not int or not 0 <= launch < len(program.launches):
        raise MalformedError("an export's program has no such launch")
    launched = program.launches[launch].kernel
    if any(
        getattr(launched, each.name) != getattr(kernel, each.name) for each in fields(Kernel) if each.name != "name"
    ):
        raise MalformedError("an exported kernel differs from the one that its program launches")
    return Exported(name, kernel, None, program, launch)


def _thing(number: object, things: tuple[Kernel | Program, ...]) -> Kernel | Program:
    if type(number) is not int or not 0 <= number < len(things):
        raise MalformedError("an export refers to nothing in the document")
    return things[number]


def _localise(document: object, file: str) -> None:
    """Replace the file of each location: by the text's name for places in the text, else by ELSEWHERE."""
    rows = cast("dict[str, Any]", document).get("rows") if isinstance(document, dict) else None
    for row in cast("list[Any]", rows) if isinstance(rows, list) else []:
        if isinstance(row, list) and len(cast("list[Any]", row)) > 1 and row[0] == "Frame":
            row[1] = _local(cast("object", row[1]), file)


def _local(named: object, file: str) -> str:
    return file if named in (f"{SCRATCH}/{PurePath(file).name}", file) else ELSEWHERE


# -- diagnostics of the text -------------------------------------------------------------------------------------------


def _diagnostic(given: object, file: str) -> Diagnostic:
    if not isinstance(given, dict):
        raise MalformedError("expected a diagnostic")
    fields = cast("dict[str, Any]", given)
    code = fields.get("code")
    if code not in _CODES:
        raise MalformedError("a diagnostic with an unknown code")
    return Diagnostic(
        str(code),
        "error",
        _clean(fields.get("message")),
        _label(fields.get("primary"), file),
        tuple(_label(each, file) for each in _list(fields.get("secondary"))),
        notes=tuple(_clean(each) for each in _list(fields.get("notes"))),
        help=_clean(fields.get("help")),
        kernel=_clean(fields.get("kernel")),
    )


def _list(given: object) -> list[object]:
    return cast("list[object]", given)[:_MOST_LINES] if isinstance(given, list) else []


def _label(given: object, file: str) -> Label:
    fields = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    frames = (_frame(each, file) for each in _list(fields.get("frames")))
    return Label(Span(tuple(each for each in frames if each is not None)), _clean(fields.get("text")))


def _frame(given: object, file: str) -> Frame | None:
    fields = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    places = [fields.get(name) for name in ("line", "column", "end_column")]
    if not all(type(each) is int and 0 <= each < 1 << 30 for each in places):
        return None
    line, column, end = cast("list[int]", places)
    return Frame(_local(fields.get("file"), file), line, column, end, _clean(fields.get("function"))[:200])


def _clean(given: object) -> str:
    """The text cut to a bounded length, with non-printable characters, such as terminal escapes, replaced."""
    text = (given if isinstance(given, str) else "")[:_LONGEST].replace(f"{SCRATCH}/", "")
    return "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in text)
