"""Dropout with torch's random bits: proved, its text computes it, and what draws or keeps otherwise is not proved."""

from __future__ import annotations

import inspect
from types import ModuleType

import pytest
from attrs import evolve

from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.kernels import dropout
from argus.kernels.dropout import FAMILIES
from argus.language import Template
from argus.runtime.cpu.validate import validate
from argus.verifier.kernel import verify

NO_RUNS = evolve(Budget(), runs=0)
CASES = [(kind, config) for kind, family in FAMILIES.items() for config in family.configs]


@pytest.mark.share(4)
@pytest.mark.parametrize(("kind", "config"), CASES)
def test_every_configuration_is_proved(kind: str, config: str) -> None:
    verdict = verify(FAMILIES[kind], config=config, solver="z3", budget=NO_RUNS).verdict
    assert isinstance(verdict, Proved), verdict
    assert any("assert_equals(Y" in each for each in verdict.results)


@pytest.mark.share(9)
@pytest.mark.parametrize(("kind", "config"), [each for each in CASES if "cdna3" not in each[1]])
def test_the_text_agrees_with_the_interpreter(kind: str, config: str) -> None:
    vector = FAMILIES[kind].configs[config].vector
    sizes = [{"N": 300 * vector, "T": 256}, {"N": 2 * vector, "T": 512}]
    found = validate(FAMILIES[kind].trace(config), sizes, seeds=1)
    assert all(each.right and each.elements for each in found.trials), found


EDITS = {
    "numbers of the next element": ("_counter(block * cfg.tile + e,", "_counter(block * cfg.tile + e + 1,"),
    "halves of the seed exchanged": ("cfg.vector), low, high)", "cfg.vector), high, low)"),
    "the last word left out": ("bits <= last", "bits < last"),
    "nothing divided": ("x * factor, 0.0", "x, 0.0"),
    "kept and dropped exchanged": ("x * factor, 0.0", "0.0, x * factor"),
    "numbers from the first one on": ("start[:] = first", "start[:] = 0"),
}


def edited(old: str, new: str, kind: str = "f32") -> Template:
    """The kernel of a type where the module has one edit."""
    text = inspect.getsource(dropout)
    assert text.count(old) == 1
    made = ModuleType("edited")
    exec(compile(text.replace(old, new), dropout.__file__, "exec", dont_inherit=True), made.__dict__)  # noqa: S102 reason: our module
    return made.FAMILIES[kind]


@pytest.mark.share(6)
@pytest.mark.parametrize("name", EDITS)
def test_another_dropout_is_not_proved(name: str) -> None:
    found = verify(edited(*EDITS[name]), config="drawn", solver="z3", budget=NO_RUNS).verdict
    assert not isinstance(found, Proved), found


def test_sixteen_bits_draw_for_eight_elements_at_once() -> None:
    """A thread's second four words are of the next counter, not of another thread's."""
    assert [dropout.choose(40, size) for size in (2, 4)] == ["drawn_vector8", "drawn"]
    made = edited("e, T, cfg.vector), low", "e, T, 4), low", "bf16")
    assert not isinstance(verify(made, config="drawn_vector8", solver="z3", budget=NO_RUNS).verdict, Proved)
