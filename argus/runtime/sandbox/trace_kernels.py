"""Inside: runs a kernel's text, traces what it exports and writes that as data. Nothing that it says is believed.

Reads a `Text` on its standard input; writes one JSON object on what was its standard output when it began: `document`
with `exported`, or `diagnostic`. What the text prints goes to the error stream.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir import Kernel, Program
from argus.core.serde import write
from argus.report.diagnostic_text import to_json
from argus.runtime.sandbox.messages import Text, decoded
from argus.runtime.sandbox.mounts import SCRATCH
from argus.verifier.loader import Exported, load


def main() -> None:
    asked = decoded(sys.stdin.buffer.read(), Text)
    answer = os.dup(1)
    os.dup2(2, 1)
    try:
        said = _traced(asked)
    except ArgusError as problem:
        said = {"diagnostic": to_json(problem.diagnostic)}
    except MemoryError:
        said = {"diagnostic": to_json(Diagnostic("E943", "error", "out of memory"))}
    with os.fdopen(answer, "wb") as stream:
        stream.write(json.dumps(said).encode())


def _traced(asked: Text) -> dict[str, object]:
    path = Path(SCRATCH) / asked.file
    path.write_text(asked.text, encoding="utf-8")
    exported = load(f"{path}:{asked.kernel}" if asked.kernel else str(path), seconds=asked.seconds)
    things: list[Kernel | Program] = []
    listed = [_listed(each, things, asked.seconds) for each in exported]
    return {"document": write(things), "exported": listed}


def _listed(each: Exported, things: list[Kernel | Program], seconds: float) -> dict[str, object]:
    """Which of the document's things an export is."""
    kernel = _place(each.trace(seconds=seconds), things)
    program = None if each.program is None else _place(each.program, things)
    return {"name": each.name, "kernel": kernel, "program": program, "launch": each.launch}


def _place(thing: Kernel | Program, things: list[Kernel | Program]) -> int:
    known = next((number for number, other in enumerate(things) if other is thing), None)
    if known is not None:
        return known
    things.append(thing)
    return len(things) - 1


if __name__ == "__main__":
    main()
