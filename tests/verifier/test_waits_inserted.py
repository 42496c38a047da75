"""Kernels of the corpus without their own waits: with those that the language inserts, they are proved again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from argus.core.ir import Wait, walk
from argus.core.query import Budget
from argus.core.verdict import Proved, Unknown
from argus.verifier.kernel import verify
from property_tests.programs import CORPUS, templates
from property_tests.waits import waiting_automatically

WAIT = re.compile(r"\b(vmem|lds|cp_async|bulk|wgmma)\.wait\(")
ENDED_ITERATIONS = "tiles_drained_one_by_one"
"""Its proof takes the iterations apart because each ends with waits for all queues, of which it needs none."""


def waits_by_hand(path: Path) -> bool:
    text = path.read_text(encoding="utf-8")
    return WAIT.search(text) is not None and "role(" not in text


FILES = sorted(path for path in (CORPUS / "proved").glob("*.py") if waits_by_hand(path))


def test_the_corpus_has_many_kernels_that_wait() -> None:
    assert len(FILES) > 100


@pytest.mark.share(60)
@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_inserted_waits_suffice(path: Path) -> None:
    (template,) = templates(path)
    kernel = waiting_automatically(template.trace())
    assert any(isinstance(stmt, Wait) for stmt in walk(kernel.body))

    verdict = verify(kernel, solver="z3", budget=Budget.about(10)).verdict

    assert isinstance(verdict, Unknown if path.stem == ENDED_ITERATIONS else Proved)
