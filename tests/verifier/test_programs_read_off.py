"""Tags and sets of programs read off what their tensors hold between launches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from argus.core.ir import Buffer, Kernel, Program
from argus.core.proof import tile_claims
from argus.core.proof.outputs.launch_context import LaunchContext
from argus.core.proof.outputs.program_tags import program_tags, tags_of
from argus.core.proof.values import adjacent_runs, contents, parts_left
from argus.core.proof.values.content import Names
from argus.core.verdict import Proved, Unknown, Verdict
from argus.verifier import program as verifier
from argus.verifier.loader import load
from argus.verifier.program import verify_program
from property_tests.programs import CORPUS
from tests.verifier.without_runs import WITHOUT_RUNS, nothing

pytestmark = pytest.mark.share(3, among="verifier: programs read off")

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


@pytest.mark.share(20)
@pytest.mark.parametrize("name", EDITS)
def test_attention_of_other_elements_is_not_proved(name: str, tmp_path: Path) -> None:
    old, new = EDITS[name]
    text = (TRACED / "attention_cdna3.py").read_text(encoding="utf-8")
    assert text.count(old) == 1
    (path := tmp_path / "edited.py").write_text(text.replace(old, new), encoding="utf-8")
    assert isinstance(verdict(path), Unknown)


def test_tags_that_are_read_off_are_passed_on_where_they_say_what_a_value_is(monkeypatch: pytest.MonkeyPatch) -> None:
    path = PROGRAMS / "unknown" / "even_columns_of_another_tensor.py"
    assert isinstance(verdict(path), Unknown)
    for module in (contents, parts_left):
        monkeypatch.setattr(module, "not_said_by_tags", nothing)
    assert isinstance(verdict(path), Proved)


@pytest.mark.share(2)
def test_what_tags_do_not_say_of_a_launch_they_do_not_say_of_later_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    path = PROGRAMS / "unknown" / "every_other_slab_doubled.py"
    assert isinstance(verdict(path), Unknown)
    monkeypatch.setattr(contents, "not_said_by_tags", nothing)
    assert isinstance(verdict(path), Proved)


def test_an_element_has_the_tags_of_the_launch_that_loaded_it(monkeypatch: pytest.MonkeyPatch) -> None:
    path = PROGRAMS / "refuted" / "tagged_otherwise_by_a_later_launch.py"
    assert isinstance(verdict(path), Unknown)
    monkeypatch.setattr(verifier, "program_tags", of_the_last_launch)
    assert isinstance(verdict(path), Proved)


def of_the_last_launch(launches: Iterable[LaunchContext]) -> Mapping[str, Names | str]:
    return program_tags(list(launches)[-1:])


def test_what_is_tagged_again_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    path = PROGRAMS / "refuted" / "tagged_again_between_launches.py"
    assert isinstance(verdict(path), Unknown)
    monkeypatch.setattr(tile_claims, "tags_of", no_tags)
    assert isinstance(verdict(path), Proved)


def no_tags(kernel: Kernel, buffer: Buffer) -> Names:
    return tags_of(kernel, buffer)[:0]


@pytest.mark.nightly
def test_runs_are_joined_where_they_are_adjacent(monkeypatch: pytest.MonkeyPatch) -> None:
    path = PROGRAMS / "refuted" / "stream_k_runs_overlap.py"
    assert isinstance(verdict(path), Unknown)
    monkeypatch.setattr(adjacent_runs, "_adjacent", always)
    assert isinstance(verdict(path), Proved)


def always(*_: object) -> bool:
    return True
