"""What the process that ran a text has written, parsed strictly: kernels, or a diagnostic of the text.

It is data from nobody that is trusted. A kernel is read as any kernel that comes as data; of a diagnostic the code is
one of the catalogue, texts are printable, and places lie in the text itself, whatever files were named.
"""

from __future__ import annotations

import json
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
"""The file of a place that is not in the text. No other file is named: a report shows the lines that it names."""
_MOST_LINES = 40
_LONGEST = 2000
_CODES = {each.code for each in ENTRIES}


@frozen
class Said:
    """What a text came to."""

    exported: tuple[Exported, ...]


def believed(data: bytes, file: str) -> Said:
    """file: the name of the text.

    Raises ArgusError: E945 for what is no kernel, what is wrong with the text or its kernels otherwise.
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
        return Said(_exported(fields, file))
    except (ValueError, RecursionError) as problem:
        raise ArgusError(_unbelieved(data, problem)) from None


def _unbelieved(data: bytes, problem: Exception) -> Diagnostic:
    if not data:
        message = "the process that ran the text ended without having traced a kernel"
        repair = "remove what ends or replaces the process (`sys.exit`, `os._exit`, `exec`)"
        return Diagnostic("E944", "error", message, help=repair)
    why = str(problem) if isinstance(problem, MalformedError) else f"it is no JSON ({type(problem).__name__})"
    message = "what the process that ran the text wrote is no kernel that the language makes"
    repair = "write a kernel with `argus.language` alone, and change nothing of Argus or of its output"
    return Diagnostic("E945", "error", message, facts=(("found", _clean(why)),), help=repair)


def _exported(fields: dict[str, Any], file: str) -> tuple[Exported, ...]:
    document, listed = fields["document"], fields["exported"]
    _localise(document, file)
    things = read(document)
    if not isinstance(listed, list) or not listed or len(cast("list[object]", listed)) > len(things):
        raise MalformedError("expected a list of what is exported")
    found = tuple(_one(each, things) for each in cast("list[object]", listed))
    if len({each.name for each in found}) != len(found):
        raise MalformedError("two kernels have one name")
    return found


def _one(entry: object, things: tuple[Kernel | Program, ...]) -> Exported:
    if not isinstance(entry, dict) or set(cast("dict[str, Any]", entry)) != {"name", "kernel", "program", "launch"}:
        raise MalformedError("what is exported has a name, a kernel, a program and a launch")
    given = cast("dict[str, Any]", entry)
    kernel = _thing(given["kernel"], things)
    program = None if given["program"] is None else _thing(given["program"], things)
    launch, name = given["launch"], given["name"]
    if not isinstance(kernel, Kernel) or not isinstance(name, str) or name != kernel.name:
        raise MalformedError("what is exported is no kernel, or has another name")
    if program is None:
        return Exported(name, kernel)
    if not isinstance(program, Program) or type(launch) is not int or not 0 <= launch < len(program.launches):
        raise MalformedError("what is exported is no launch of its program")
    launched = program.launches[launch].kernel
    if any(
        getattr(launched, each.name) != getattr(kernel, each.name) for each in fields(Kernel) if each.name != "name"
    ):
        raise MalformedError("what is exported is not what its program launches")
    return Exported(name, kernel, None, program, launch)


def _thing(number: object, things: tuple[Kernel | Program, ...]) -> Kernel | Program:
    if type(number) is not int or not 0 <= number < len(things):
        raise MalformedError("what is exported is none of the document's kernels")
    return things[number]


def _localise(document: object, file: str) -> None:
    """Places in the text are named after it, all others after nothing."""
    rows = cast("dict[str, Any]", document).get("rows") if isinstance(document, dict) else None
    for row in cast("list[Any]", rows) if isinstance(rows, list) else []:
        if isinstance(row, list) and len(cast("list[Any]", row)) > 1 and row[0] == "Frame":
            row[1] = _local(cast("object", row[1]), file)


def _local(named: object, file: str) -> str:
    return file if named in (f"{SCRATCH}/{file}", file) else ELSEWHERE


# -- what is wrong with the text, as the process that ran it says ------------------------------------------------------


def _diagnostic(given: object, file: str) -> Diagnostic:
    if not isinstance(given, dict):
        raise MalformedError("expected a diagnostic")
    fields = cast("dict[str, Any]", given)
    code = fields.get("code")
    if code not in _CODES:
        raise MalformedError("a diagnostic of no code that there is")
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
    """Printable, of bounded length, and without sequences that would move a terminal's cursor."""
    text = (given if isinstance(given, str) else "")[:_LONGEST].replace(f"{SCRATCH}/", "")
    return "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in text)
