"""SentryWard beside our verdicts: its input, its findings on kernels of the corpus, and each difference explained."""

from __future__ import annotations

import json
import platform
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from attrs import evolve

from argus.core.diagnostic import ArgusError
from argus.testing.sentryward import (
    Compilation,
    Finding,
    Limits,
    chosen_sizes,
    compilation,
    finding,
    installed,
    kernel_input,
    meets,
    read,
)
from argus.verifier.loader import load
from benchmarks.ptx_judge import CORPUS, RESULTS, Row, compare, corpus, explanations, unexplained

WHEEL = platform.system() == "Linux" and platform.machine() == "x86_64"
here = pytest.mark.skipif(not WHEEL, reason="SentryWard's wheel is for Linux on x86-64")
PAIRS = {
    "proved/real_hecbench_253": "race_free",
    "refuted/real_hecbench_253": "potential_race",
    "refuted/cp_async_without_a_wait": "potential_race",
    "refuted/release_covers_the_releaser_alone": "not_wellsynced",
    "proved/cp_async_two_groups_ahead": "unsupported",
}


def compiled(name: str) -> Compilation:
    (exported,) = load(str(CORPUS / f"{name}.py"))
    return compilation(exported.trace())


@pytest.fixture(scope="module")
def boxes() -> Compilation:
    """A kernel that loads boxes of 64 x 16 by TMA, two stages."""
    return compiled("proved/ordinary_reads_fenced")


def named(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


# -- input ---------------------------------------------------------------------------------------------------


def test_the_input_states_grid_maps_pointers_and_sizes_in_the_order_of_the_launch(boxes: Compilation) -> None:
    assert kernel_input(boxes.launch, {"M": 100, "N": 40}) == {
        "schema": "spverify.kernel-input/v1",
        "entry": "move_",
        "launch": {"grid_dim": [2, 1, 1], "block_dim": [256, 1, 1], "dynamic_shared_bytes": boxes.launch.shared_bytes},
        "tma_descriptors": [
            {
                "parameter": "move__param_0",
                "object": "A",
                "element_type": "bf16",
                "rank": 2,
                "global_shape": [40, 100],
                "global_strides_bytes": [80],
                "box_shape": [16, 64],
                "element_strides": [1, 1],
                "swizzle": "32B",
                "interleave": "none",
                "oob_fill": "zero",
            }
        ],
        "declarations": [{"parameter": "move__param_1", "type": "pointer", "object": "B"}],
        "arguments": [
            {"parameter": "move__param_2", "type": "u32", "value": 100},
            {"parameter": "move__param_3", "type": "u32", "value": 40},
        ],
    }


def test_a_size_without_a_value_is_refused(boxes: Compilation) -> None:
    with pytest.raises(ArgusError, match="E405"):
        kernel_input(boxes.launch, {"M": 100})


def test_chosen_sizes_meet_the_checks_of_the_launch(boxes: Compilation) -> None:
    assert chosen_sizes(boxes.launch) == {"M": 100, "N": 296}  # two blocks, a part of a tile
    assert not meets(boxes.launch, {"M": 100, "N": 100})  # the kernel assumes N % 8 == 0
    never = evolve(boxes.launch.checks[0], condition="N == 7")
    assert chosen_sizes(evolve(boxes.launch, checks=(never,))) is None


# -- findings ------------------------------------------------------------------------------------------------


def test_only_a_finding_or_a_pass_is_an_opinion() -> None:
    opinions = {name: Finding(name).opinion for name in ("race_free", "potential_race", "not_wellsynced", "timeout")}
    assert opinions == {"race_free": "clean", "potential_race": "fault", "not_wellsynced": "fault", "timeout": "none"}
    report = {"result": "unsupported", "diagnostics": [{"code": "a"}, {"code": "b"}, {"code": "a"}]}
    assert read(report) == Finding("unsupported", ("a", "b"))


def test_a_difference_is_between_two_opinions() -> None:
    row = Row("proved/one", "proved", "race_free", (), {}, wgmma=False, lines=1, seconds=0.0)
    relations = [
        evolve(row, ours=ours, theirs=theirs).relation
        for ours in ("proved", "refuted I5", "unknown")
        for theirs in ("race_free", "potential_race", "unsupported")
    ]
    assert relations == ["agree", "differ", "no opinion", "differ", "agree", *["no opinion"] * 4]


def test_a_peer_that_is_missing_is_said_to_be(boxes: Compilation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentryward", None)
    assert not installed()
    with pytest.raises(ArgusError, match=r"E814.*`sentryward` is not installed"):
        finding(boxes, {"M": 64, "N": 16})


@pytest.mark.nightly
@here
def test_the_extra_that_make_installs_is_there() -> None:
    assert installed()
    assert version("sentryward") == "0.1.1"


@pytest.mark.nightly
@here
@pytest.mark.parametrize(("name", "result"), PAIRS.items(), ids=list(PAIRS))
def test_a_finding_is_the_one_we_know(name: str, result: str) -> None:
    made = compiled(name)
    sizes = chosen_sizes(made.launch)
    assert sizes is not None
    assert finding(made, sizes).result == result


@pytest.mark.nightly
@here
def test_the_memory_of_the_caller_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The peak of a process that is started begins at its parent's: of 2 GB more, no finding would be left."""
    made, limits = compiled("refuted/cp_async_without_a_wait"), Limits(mebibytes=1024)
    sizes = chosen_sizes(made.launch)
    assert sizes is not None
    assert len(b"x" * (2 << 30)) == 2 << 30
    assert finding(made, sizes, limits).result == "potential_race"
    monkeypatch.setattr("argus.testing.sentryward._peak_mebibytes", int)
    assert finding(made, sizes, limits).result == "memory_budget_exceeded"


@pytest.mark.nightly
@here
def test_a_fault_that_only_some_sizes_show_needs_the_counterexamples_sizes() -> None:
    name = "refuted/slot_unmet_where_a_loop_has_no_trips"
    made = compiled(name)
    assert finding(made, {"M": 1, "K": 128, "N": 4}).opinion == "clean"  # the loop over `half` and `depth` has no trips
    (subject,) = (each for each in corpus(("refuted",), "slot_unmet_where_a_loop_has_no_trips"))
    assert subject.sizes == {"M": 1, "K": 256, "N": 4}
    assert compare(subject, made=made).relation == "agree"


@pytest.mark.nightly
@here
def test_what_runs_out_of_time_is_no_opinion(boxes: Compilation) -> None:
    assert finding(boxes, {"M": 100, "N": 96}, Limits(seconds=0.001)).result == "timeout"


def plain_files() -> list[Path]:
    """Files of kernels for sm_90a that name no wgmma."""
    paths = (path for kind in ("proved", "refuted", "traced") for path in sorted((CORPUS / kind).glob("*.py")))
    texts = ((path, path.read_text(encoding="utf-8")) for path in paths)
    return [path for path, text in texts if "sm_90a" in text and "wgmma" not in text]


@pytest.mark.nightly
@here
@pytest.mark.parametrize("path", plain_files(), ids=named)
def test_a_kernel_without_wgmma_is_judged_alike_or_the_difference_is_explained(path: Path) -> None:
    for subject in corpus((path.parent.name,), path.stem):
        row = compare(subject)
        assert not unexplained([row]), f"add a row to the table of docs/soundness.md for {row}"


# -- the stored table ----------------------------------------------------------------------------------------


def stored() -> list[Row]:
    data = json.loads(RESULTS.read_text(encoding="utf-8"))
    return [Row(**each) for each in data["rows"]]


def test_every_stored_difference_is_explained_and_every_row_of_the_table_explains_one() -> None:
    rows = stored()
    differences = [row for row in rows if row.relation == "differ"]
    assert differences
    assert not unexplained(rows)
    idle = [each for each in explanations() if not any(each.fits(row) for row in differences)]
    assert not idle


def test_a_difference_without_a_row_of_the_table_is_found() -> None:
    row = next(row for row in stored() if row.relation == "differ")
    assert unexplained([evolve(row, name="proved/of_another_name", ours="proved", theirs="invalid_lifecycle")])
