"""Search spaces: points, their tables, and times measured in batches."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import define, field

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir import Kernel
from argus.emit import build
from argus.emit.hip.text import hip_texts
from argus.kernels.gemm import CONFIGS, configuration
from argus.kernels.schedules.cdna3_staged import Cdna3Staged
from argus.kernels.schedules.staged import Staged
from argus.runtime.processes.watchdog import WatchedProcess
from argus.search.tuning.candidates import design_space, tuning_candidates
from argus.search.tuning.measure import Job, Medians
from argus.search.tuning.space_table import blocks_at_once, row
from argus.search.tuning.space_times import Plan, Time, time_points

SHAPE = (256, 256, 256)


@pytest.mark.parametrize(("target", "first", "least"), [("sm_90a", Staged(), 900), ("gfx942", Cdna3Staged(), 400)])
def test_a_space_reaches_from_the_first_kernel_to_those_shipped(target: str, first: object, least: int) -> None:
    found = design_space(target)

    assert len(found) >= least
    assert len(set(found.values())) == len(found)
    assert first in found.values()
    assert {name for name, each in CONFIGS.items() if each.target.name == target} <= found.keys()
    assert tuning_candidates(target).items() <= found.items()
    assert all(configuration(name) == each and each.target.name == target for name, each in found.items())


# -- the table -------------------------------------------------------------------------------------------------


@pytest.mark.share(3)
@pytest.mark.parametrize(("name", "kind"), [("staged_vector8", ".cubin"), ("cdna3staged_vector8", ".hsaco")])
def test_a_point_that_is_ready_lies_in_the_folder(name: str, kind: str, tmp_path: Path) -> None:
    found = row(name, tmp_path)

    assert (found.state, found.verdict, found.why, found.spills) == ("ready", "proved", "", 0)
    assert found.registers > 0
    assert found.occupancy > 0
    assert found.shared >= 2 * (64 + 64) * 32
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} == {f"{name}{kind}", f"{name}.json"}
    assert (tmp_path / f"{name}{kind}").stat().st_size == found.size


@pytest.mark.parametrize(
    ("name", "verdict", "code"),
    [
        ("staged_asynchronous", "refused", "E108"),
        ("hopper_stages9", "refuted", "I22"),
        ("cdna3staged_bm96", "refused", "E109"),
        ("nothing", "refused", ""),
    ],
)
def test_a_point_that_is_left_out_says_why(name: str, verdict: str, code: str, tmp_path: Path) -> None:
    found = row(name, tmp_path)

    assert (found.state, found.verdict, found.code) == ("left out", verdict, code)
    assert found.why
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def keeping_addresses(kernel: Kernel) -> tuple[str, ...]:
    return hip_texts(kernel)[:1]


@pytest.mark.nightly
def test_a_point_that_spills_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This one spills unless its loop computes addresses anew."""
    name = "cdna3staged_bm256_bn256_run8_vector8"
    assert row(name, tmp_path / "anew").state == "ready"

    monkeypatch.setattr(build, "compiled_texts", keeping_addresses)
    tmp_path = tmp_path / "kept"
    found = row(name, tmp_path)

    assert (found.state, found.verdict, found.code) == ("left out", "proved", "E305")
    assert found.spills > 0
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_blocks_of_a_multiprocessor() -> None:
    assert blocks_at_once(168, 384, 230_464) == 1
    assert blocks_at_once(73, 128, 9_216) == 6
    assert blocks_at_once(32, 128, 1_000) == 16
    assert blocks_at_once(24, 32, 0) == 32


# -- times -----------------------------------------------------------------------------------------------------


@define
class FakeChild(WatchedProcess):
    """A fake child that returns times by name. fails: names that hang, and whether during timing."""

    seconds: float = 1.0
    fails: dict[str, bool] = field(factory=dict[str, bool])
    wrong: tuple[str, ...] = ()
    jobs: list[list[str]] = field(factory=list[list[str]])

    def call(self, work: Callable[..., object], *arguments: object) -> Medians:
        del work
        (job,) = arguments
        assert isinstance(job, Job)
        self.jobs.append(list(job.paths))
        for name, late in self.fails.items():
            if name in job.paths:
                self.last_note = "brief: all" if late else name
                raise ArgusError(Diagnostic("E410", "error", "it hangs"))
        good = [name for name in job.paths if name not in self.wrong]
        return Medians({"brief": {name: float(len(name)) for name in good}}, {}, self.wrong)


def plan(seconds: float = 60.0) -> Plan:
    names = ["a", "bb", "ccc", "dddd", "common"]
    return Plan({name: f"{name}.json" for name in names}, names, "common", 2, time.monotonic() + seconds)


def test_each_batch_has_one_point_in_common() -> None:
    child = FakeChild()
    batches = list(time_points(child, SHAPE, plan()))

    assert child.jobs == [["common", "a", "bb"], ["common", "ccc", "dddd"]]
    assert batches[0][1] == Time(SHAPE, "a", 1.0, "", 6.0)
    assert [found.name for batch in batches for found in batch] == ["common", "a", "bb", "common", "ccc", "dddd"]


def test_a_point_that_hangs_is_reported_and_its_batch_continues() -> None:
    child = FakeChild(fails={"bb": False}, wrong=("dddd",))
    found = {each.name: each for batch in time_points(child, SHAPE, plan()) for each in batch}

    assert child.jobs == [["common", "a", "bb"], ["common", "a"], ["common", "ccc", "dddd"]]
    assert found["bb"].microseconds is None
    assert "it hangs" in found["bb"].why
    assert (found["dddd"].microseconds, found["dddd"].why) == (None, "wrong results")
    assert found["a"].microseconds == 1.0


def test_if_the_hanging_point_is_unknown_each_is_timed_alone() -> None:
    child = FakeChild(fails={"bb": True})
    found = {each.name: each for batch in time_points(child, SHAPE, plan()) for each in batch}

    assert child.jobs == [["common", "a", "bb"], ["common"], ["a"], ["bb"], ["common", "ccc", "dddd"]]
    assert found["a"].microseconds == 1.0
    assert found["bb"].microseconds is None


def test_no_batch_starts_after_the_deadline() -> None:
    assert list(time_points(FakeChild(), SHAPE, plan(seconds=-1.0))) == []
