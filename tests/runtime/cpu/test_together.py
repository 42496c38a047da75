"""Kernels compiled as one unit: each is judged by itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.runtime.cpu.together import Runs, validate_together
from argus.runtime.cpu.validate import Emitted, Validation, chosen_sizes, emitted
from argus.verifier.loader import load

PROVED = Path(__file__).parents[2] / "corpus" / "proved"
SIZES = {"M": 33, "N": 40, "K": 24}


def kernel(name: str) -> Kernel:
    return load(str(PROVED / f"{name}.py"))[0].trace()


def runs(made: Emitted) -> Runs:
    return Runs(made, [(SIZES, 0), (SIZES, 1)])


def edited(made: Emitted, old: str, new: str) -> Emitted:
    assert old in made.text
    return evolve(made, text=made.text.replace(old, new))


def found(*made: Emitted) -> list[Validation | ArgusError]:
    return validate_together([runs(each) for each in made], seconds=20)


def right(each: Validation | ArgusError) -> bool:
    return isinstance(each, Validation) and each.right


@pytest.mark.share(2)
def test_only_the_kernel_with_a_fault_fails() -> None:
    hip, cuda = emitted(kernel("single_buffer")), emitted(kernel("cluster_shares_b"))
    wrong = edited(hip, "meet();", ";")

    answers = found(hip, cuda, wrong, hip)

    assert [right(each) for each in answers] == [True, True, False, True]
    assert isinstance(answers[2], Validation)
    assert len(answers[2].trials) == 1


def test_a_text_that_does_not_compile_spoils_no_other() -> None:
    made = emitted(kernel("single_buffer"))

    first, second = found(edited(made, "meet();", "no_such_helper();"), made)

    assert isinstance(first, ArgusError)
    assert first.diagnostic.code == "E304"
    assert right(second)


def test_an_access_to_the_memory_of_another_kernel_is_out_of_bounds() -> None:
    """Each kernel's arrays in LDS lie between guard zones of their own."""
    made = emitted(kernel("attention_causal_turned_in_memory"))
    store = "store_b32(&box_[base0 + 48], &value_59_[3]);"
    beyond = edited(made, store, f"{store} store_b32(&box_[base0 + 48 + 4096], &value_59_[3]);")
    cases = [(chosen_sizes(made.kernel)[0], 0)]

    answers = validate_together([Runs(beyond, cases), Runs(made, cases)])

    assert isinstance(answers[0], Validation)
    assert {finding.kind for finding in answers[0].trials[0].findings} == {"bounds"}
    assert right(answers[1])
