"""The sandboxed process that runs an untrusted kernel text, traces its exports, and writes them as data.

Reads a `TraceRequest` from its standard input; writes one JSON object to the original standard output: `document` with
`exported`, or `diagnostic`. What the text prints goes to the error stream. `parse_output` trusts none of the output.
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
from argus.runtime.sandbox.messages import TraceRequest, decode
from argus.runtime.sandbox.mounts import SCRATCH
from argus.verifier.loader import Exported, load


def main() -> None:
    request = decode(sys.stdin.buffer.read(), TraceRequest)
    answer = os.dup(1)
    os.dup2(2, 1)
    try:
        output = _trace(request)
    except ArgusError as problem:
        output = {"diagnostic": to_json(problem.diagnostic)}
    except MemoryError:
        output = {"diagnostic": to_json(Diagnostic("E943", "error", "out of memory"))}
    with os.fdopen(answer, "wb") as stream:
        stream.write(json.dumps(output).encode())


def _trace(request: TraceRequest) -> dict[str, object]:
    path = Path(SCRATCH) / request.file
    path.write_text(request.text, encoding="utf-8")
    exported = load(f"{path}:{request.kernel}" if request.kernel else str(path), seconds=request.seconds)
    things: list[Kernel | Program] = []
    listed = [_export(each, things, request.seconds) for each in exported]
    return {"document": write(things), "exported": listed}


def _export(each: Exported, things: list[Kernel | Program], seconds: float) -> dict[str, object]:
    """An export, with its kernel and program as indices into the document."""
    kernel = _index_of(each.trace(seconds=seconds), things)
    program = None if each.program is None else _index_of(each.program, things)
    return {"name": each.name, "kernel": kernel, "program": program, "launch": each.launch}


def _index_of(thing: Kernel | Program, things: list[Kernel | Program]) -> int:
    known = next((number for number, other in enumerate(things) if other is thing), None)
    if known is not None:
        return known
    things.append(thing)
    return len(things) - 1


if __name__ == "__main__":
    main()
