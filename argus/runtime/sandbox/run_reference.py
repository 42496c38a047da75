"""The sandboxed process that runs an untrusted text's reference on arrays, and writes its results as data.

Reads `ReferenceCalls` from its standard input; writes `ReferenceResults` to the original standard output. What the text
prints goes to the error stream. The caller trusts nothing in the output: it only parses numbers from it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import numpy as np

from argus.core.diagnostic import ArgusError
from argus.runtime.sandbox.messages import Floats, ReferenceCalls, ReferenceResults, decode, encode
from argus.runtime.sandbox.mounts import SCRATCH
from argus.runtime.sandbox.user_reference import REFERENCE, WORK, call_reference
from argus.verifier.loader import load_with_names


def main() -> None:
    calls_ = decode(sys.stdin.buffer.read(), ReferenceCalls)
    answer = os.dup(1)
    os.dup2(2, 1)
    try:
        results = _results(calls_)
    except ArgusError as problem:
        results = ReferenceResults(fault=problem.diagnostic.message)
    except Exception as problem:  # noqa: BLE001 reason: the text may return anything
        results = ReferenceResults(fault=f"{type(problem).__name__}: {problem}")
    with os.fdopen(answer, "wb") as stream:
        stream.write(encode(results))


def _results(calls_: ReferenceCalls) -> ReferenceResults:
    path = Path(SCRATCH) / calls_.file
    path.write_text(calls_.text, encoding="utf-8")
    _, names = load_with_names(str(path), seconds=calls_.seconds)
    reference, work = names.get(REFERENCE), names.get(WORK)
    if not callable(reference):
        return ReferenceResults(fault=f"it has no function `{REFERENCE}`")
    calls = [{name: each.values.copy() for name, each in given.items()} for given in calls_.given]
    work_json = json.dumps(work(**calls_.sizes)) if callable(work) else ""
    return ReferenceResults(tuple(_plain(call_reference(reference, call)) for call in calls), work_json)


def _plain(found: object) -> dict[str, Floats]:
    several = cast("Mapping[str, object]", found) if isinstance(found, Mapping) else {"": found}
    return {str(name): Floats.of(np.asarray(each, np.float64)) for name, each in several.items()}


if __name__ == "__main__":
    main()
