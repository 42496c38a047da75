"""Inside: runs a text's reference on arrays, and writes what it gives as data. Nothing of it is believed but numbers.

Reads `Questions` on its standard input; writes `Answers` on what was its standard output when it began.
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
from argus.runtime.sandbox.answers import REFERENCE, WORK, asked
from argus.runtime.sandbox.messages import Answers, Floats, Questions, decoded, encoded
from argus.runtime.sandbox.mounts import SCRATCH
from argus.verifier.loader import load_with_names


def main() -> None:
    questions = decoded(sys.stdin.buffer.read(), Questions)
    answer = os.dup(1)
    os.dup2(2, 1)
    try:
        said = _answers(questions)
    except ArgusError as problem:
        said = Answers(fault=problem.diagnostic.message)
    except Exception as problem:  # noqa: BLE001 reason: the text may give anything
        said = Answers(fault=f"{type(problem).__name__}: {problem}")
    with os.fdopen(answer, "wb") as stream:
        stream.write(encoded(said))


def _answers(questions: Questions) -> Answers:
    path = Path(SCRATCH) / questions.file
    path.write_text(questions.text, encoding="utf-8")
    _, names = load_with_names(str(path), seconds=questions.seconds)
    reference, work = names.get(REFERENCE), names.get(WORK)
    if not callable(reference):
        return Answers(fault=f"it has no function `{REFERENCE}`")
    calls = [{name: each.values.copy() for name, each in given.items()} for given in questions.given]
    told = json.dumps(work(**questions.sizes)) if callable(work) else ""
    return Answers(tuple(_plain(asked(reference, call)) for call in calls), told)


def _plain(found: object) -> dict[str, Floats]:
    several = cast("Mapping[str, object]", found) if isinstance(found, Mapping) else {"": found}
    return {str(name): Floats.of(np.asarray(each, np.float64)) for name, each in several.items()}


if __name__ == "__main__":
    main()
