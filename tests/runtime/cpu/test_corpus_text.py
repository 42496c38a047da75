"""The emitted text of the proved corpus agrees with the interpreter: all of it in the tier `all`, else a share."""

from __future__ import annotations

from pathlib import Path

import pytest

from argus.runtime.cpu.programs import validate_program
from argus.runtime.cpu.validate import Validation, every_text, validate
from argus.verifier.loader import load

CORPUS = Path(__file__).parents[2] / "corpus"
FILES = sorted([*CORPUS.glob("proved/*.py"), *CORPUS.glob("traced/*.py"), *CORPUS.glob("programs/proved/*.py")])

TOO_LARGE = {"descriptor_of_its_largest_span"}
"""Kernels whose assumptions allow only sizes that are too large to run."""
NOT_AT_RANDOM = {"formula_rows_of_experts_for_tokens"}
"""Programs whose launches promise together what random integers do not keep; tests/kernels/test_moe.py has an order."""


def validated(path: Path) -> list[Validation]:
    exported = load(str(path))
    programs = dict.fromkeys(each.program for each in exported if each.program is not None)
    alone = [validate(each.trace()) for each in exported if each.program is None]
    return [*alone, *(validate_program(each) for each in programs)]


@pytest.mark.share(384)
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_text_agrees_with_the_interpreter(path: Path) -> None:
    found = validated(path)

    assert found
    assert all(each.trials for each in found) or path.stem in TOO_LARGE | NOT_AT_RANDOM
    assert all(each.right for each in found), [t for each in found for t in each.trials if not t.right][:1]


@pytest.mark.share(16, among="addresses computed anew")
@pytest.mark.parametrize(
    ("file", "name"),
    [("attention_cdna3", "attention_cdna3_mi300x_attend"), ("convolution", "conv2d_dilated")],
)
def test_addresses_computed_anew_agree_too(file: str, name: str) -> None:
    """The second text, which is built for kernels that would spill registers otherwise."""
    exported = load(str(CORPUS / "traced" / f"{file}.py"))
    kernel = next(made for each in exported if (made := each.trace()).name == name)
    kept, anew = every_text(kernel)
    assert ("opaque(" in kept.text, "opaque(" in anew.text) == (False, True)

    found = validate(kernel)

    runs = [trial.text for trial in found.trials]
    assert runs.count(1) == runs.count(2) == len(runs) / 2 > 0
    assert found.right, [trial for trial in found.trials if not trial.right][:1]
