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
TRACED = CORPUS / "traced"


def programs_of(path: Path) -> Iterator[Program]:
    yield from dict.fromkeys(each.program for each in load(str(path)) if each.program is not None)


def verdict(path: Path) -> Verdict:
    """The verdict on the only program of a file, without a search for counterexamples."""
    (program,) = programs_of(path)
    return verify_program(program, budget=WITHOUT_RUNS).verdict


def named(path: Path) -> str:
    return path.stem


PROVED = [*sorted((PROGRAMS / "proved").glob("*.py")), TRACED / "attention_cdna3.py", TRACED / "split_k.py"]
EDITS = {
    "keys of another block for one group": (
        "eq(group, 1)):\n        bring(1)",
        "eq(group, 1) & (count > 1)):\n        copy(k.tile((keys, 128), (0, 0)), lds_k[1], via=buffer_load_lds, by=by)",
    ),
    "keys of every other block twice": ("k.tile((keys, 128), (n, 0))", "k.tile((keys, 128), (n - n % 2 * group, 0))"),
    "keys of a block from its end": (
        "k.tile((keys, 128), (n, 0))",
        "k.gather((keys, 128), lambda t, d: (n * keys + keys - 1 - t, d))",
    ),
    "every other key twice": (
        "k.tile((keys, 128), (n, 0))",
        "k.gather((keys, 128), lambda t, d: (n * keys + t - t % 2, d))",
    ),
    "values of the block before": ("vt.tile((128, keys), (0, n - 1))", "vt.tile((128, keys), (0, n))"),
}


@pytest.mark.share(4)
@pytest.mark.parametrize("path", PROVED, ids=named)
def test_a_proved_program_is_proved_without_the_rules(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_rules(monkeypatch)
    for program in programs_of(path):
        assert isinstance(verify_program(program, budget=WITHOUT_RUNS).verdict, Proved)


@pytest.mark.share(8)
@pytest.mark.parametrize("name", EDITS)
def test_attention_of_other_elements_is_not_proved(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = EDITS[name]
    text = (TRACED / "attention_cdna3.py").read_text(encoding="utf-8")
    assert text.count(old) == 1
    (path := tmp_path / "edited.py").write_text(text.replace(old, new), encoding="utf-8")
    without_rules(monkeypatch)
    assert isinstance(verdict(path), Unknown)


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
