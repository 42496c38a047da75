"""Tags and sets of programs read off what their tensors hold between launches, without the rules for tags."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from argus.core.ir import Buffer, Kernel, Program
from argus.core.proof import tile_claims
from argus.core.proof.dataflow.reaching import Flow
from argus.core.proof.obligation import Obligation
from argus.core.proof.outputs import programs
from argus.core.proof.outputs.launch_context import LaunchContext
from argus.core.proof.outputs.program_context import NO_PROGRAM
from argus.core.proof.outputs.program_tags import program_tags, tags_of
from argus.core.proof.values import adjacent_runs, contents, parts_left
from argus.core.proof.values.content import Names, TensorContent
from argus.core.verdict import Proved, Unknown, Verdict
from argus.verifier import program as verifier
from argus.verifier.loader import load
from argus.verifier.program import verify_program
from property_tests.programs import CORPUS
from tests.verifier.without_rules import WITHOUT_RUNS, nothing, without_rules

PROGRAMS = CORPUS / "programs"
NOT_YET = {"attention_cdna3": "a tile that is turned around in memory"}


def programs_of(path: Path) -> Iterator[Program]:
    yield from dict.fromkeys(each.program for each in load(str(path)) if each.program is not None)


def verdict(path: Path) -> Verdict:
    """The verdict on the only program of a file, without a search for counterexamples."""
    (program,) = programs_of(path)
    return verify_program(program, budget=WITHOUT_RUNS).verdict


def named(path: Path) -> str:
    return path.stem


PROVED = [*sorted((PROGRAMS / "proved").glob("*.py")), *map((CORPUS / "traced").joinpath, ["split_k.py"])]


@pytest.mark.share(4)
@pytest.mark.parametrize("path", PROVED, ids=named)
def test_a_proved_program_is_proved_without_the_rules(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_rules(monkeypatch)
    for program in programs_of(path):
        assert isinstance(verify_program(program, budget=WITHOUT_RUNS).verdict, Proved)


@pytest.mark.share(30)
@pytest.mark.parametrize("stem", NOT_YET)
def test_not_yet(stem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    without_rules(monkeypatch)
    for program in programs_of(CORPUS / "traced" / f"{stem}.py"):
        assert isinstance(verify_program(program, budget=WITHOUT_RUNS).verdict, Unknown)


@pytest.mark.share(8)
@pytest.mark.parametrize("path", sorted((PROGRAMS / "refuted").glob("*.py")), ids=named)
def test_a_refuted_program_is_not_proved_without_the_rules(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_rules(monkeypatch)
    assert isinstance(verdict(path), Unknown)


def test_tags_that_rules_leave_are_passed_on_where_rules_prove_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch that a formula proves is asked nothing by the rules: what they leave may be wrong."""
    path = PROGRAMS / "refuted" / "rows_multiplied_from_opposite_ends.py"
    assert isinstance(verdict(path), Unknown)
    monkeypatch.setattr(tile_claims, "parts_left", by_the_rules)
    assert isinstance(verdict(path), Proved)


def by_the_rules(flow: Flow, tensor: Buffer, *_: object) -> TensorContent:
    return programs.tensors_after(flow, NO_PROGRAM)[tensor]


def test_tags_that_are_read_off_are_passed_on_where_they_say_what_a_value_is(monkeypatch: pytest.MonkeyPatch) -> None:
    path = PROGRAMS / "unknown" / "even_columns_of_another_tensor.py"
    assert isinstance(verdict(path), Unknown)
    monkeypatch.setattr(parts_left, "not_said_by_tags", nothing)
    assert isinstance(verdict(path), Proved)


def test_what_tags_do_not_say_of_a_launch_they_do_not_say_of_later_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    path = PROGRAMS / "unknown" / "every_other_slab_doubled.py"
    assert isinstance(verdict(path), Unknown)
    monkeypatch.setattr(contents, "not_said_by_tags", nothing)
    assert isinstance(verdict(path), Proved)


def test_an_element_has_the_tags_of_the_launch_that_loaded_it(monkeypatch: pytest.MonkeyPatch) -> None:
    path = PROGRAMS / "refuted" / "tagged_otherwise_by_a_later_launch.py"
    without_rules(monkeypatch)
    assert isinstance(verdict(path), Unknown)
    monkeypatch.setattr(verifier, "program_tags", of_the_last_launch)
    assert isinstance(verdict(path), Proved)


def of_the_last_launch(launches: Iterable[LaunchContext]) -> Mapping[str, Names | str]:
    return program_tags(list(launches)[-1:])


def test_what_is_tagged_again_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    path = PROGRAMS / "refuted" / "tagged_again_between_launches.py"
    without_rules(monkeypatch)
    assert isinstance(verdict(path), Unknown)
    monkeypatch.setattr(tile_claims, "tags_of", no_tags)
    assert isinstance(verdict(path), Proved)


def no_tags(kernel: Kernel, buffer: Buffer) -> Names:
    return tags_of(kernel, buffer)[:0]


def test_runs_are_joined_where_they_are_adjacent(monkeypatch: pytest.MonkeyPatch) -> None:
    path = PROGRAMS / "refuted" / "stream_k_runs_overlap.py"
    without_rules(monkeypatch)
    monkeypatch.setattr(programs, "_disjoint_parts", none)
    assert isinstance(verdict(path), Unknown)
    monkeypatch.setattr(adjacent_runs, "_adjacent", always)
    assert isinstance(verdict(path), Proved)


def none(*_: object) -> Iterator[Obligation]:
    yield from ()


def always(*_: object) -> bool:
    return True
