"""Autotuning: candidates, failures and stored results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from attrs import define, field

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.emit.cuda.text import cuda_text
from argus.kernels.gemm import CONFIGS, configuration, gemm
from argus.ops.choice import select
from argus.runtime import tuning_db
from argus.runtime.processes.watchdog import WatchedProcess
from argus.runtime.tuning_db import Key, TunedConfig
from argus.search.tuning import prepare
from argus.search.tuning.candidates import tuning_candidates
from argus.search.tuning.measure import Job, Medians, measure_brief, measure_thorough
from argus.search.tuning.prepare import prepare_all, prepare_one
from argus.search.tuning.search import FINALISTS, search_shapes, stored_results

SHAPE, OTHER = (4096, 4096, 4096), (512, 7168, 2048)
CARD = "Imagined GPU"
NAMES: tuple[str, ...] = ("cooperative", "clustered", "clustered_bands", "columns_224", "columns_64", "small", "skinny")
PATHS: dict[str, str] = dict.fromkeys(NAMES, "somewhere.json")
SHARED = 232_448
KEPT = 1024
"""Bytes reserved per block; an SM has as many more than the limit of a block."""


# -- candidates ------------------------------------------------------------------------------------------------


def test_all_that_is_shipped_and_fifty_more_are_tried() -> None:
    found = tuning_candidates()

    assert {name for name, each in CONFIGS.items() if each.target.name == "sm_90a"} <= found.keys()
    assert len(found) >= 63
    assert len(set(found.values())) == len(found)
    assert all(configuration(name) == each for name, each in found.items())
    assert set(tuning_candidates("gfx942")) == {
        *("cdna3", "cdna3_pingpong"),
        *("interleaved", "interleaved_128", "interleaved_any", "interleaved_pairs", "interleaved_narrow"),
    }


@pytest.mark.parametrize("name", [name for name in tuning_candidates() if name not in CONFIGS][::4])
def test_a_candidate_fits_the_shared_memory_of_a_block(name: str) -> None:
    used = cuda_text(gemm.instance(tuning_candidates()[name], name)).plan.bytes
    alone, two = SHARED // 2 < used <= SHARED, SHARED // 3 < used <= SHARED // 2 - KEPT
    assert alone or (two and name.endswith("swapab"))


# -- proofs and code -------------------------------------------------------------------------------------------


@pytest.mark.share(3)
def test_a_candidate_is_proved_and_compiled_and_found_again(tmp_path: Path) -> None:
    first = prepare_one("hopper_bn64_stages7", tmp_path)
    compiled = Path(first.path).with_suffix(".cubin").stat()
    again = prepare_one("hopper_bn64_stages7", tmp_path)

    assert first.state == again.state == "ready"
    assert compiled.st_size > 0
    assert again.path == first.path
    assert Path(again.path).with_suffix(".cubin").stat().st_mtime_ns == compiled.st_mtime_ns


@pytest.mark.share(4)
def test_a_process_pool_prepares_the_same_as_one_process(tmp_path: Path) -> None:
    names = ["columns_64", "nothing", "hopper_bn64_stages7"]
    found = {each.name: each for each in prepare_all(names, 2, tmp_path)}

    assert {name: each.state for name, each in found.items()} == {
        "columns_64": "ready",
        "nothing": "left out",
        "hopper_bn64_stages7": "ready",
    }
    assert found["hopper_bn64_stages7"].path == prepare_one("hopper_bn64_stages7", tmp_path).path


@pytest.mark.parametrize(
    ("name", "why"),
    [("nothing", "not the name of a configuration"), ("hopper_bn250", "E"), ("hopper_stages9", "it is ref")],
)
def test_unproved_candidates_are_left_out(name: str, why: str, tmp_path: Path) -> None:
    found = prepare_one(name, tmp_path)

    assert found.state == "left out"
    assert why in found.why
    assert list(tmp_path.glob("*/*.cubin")) == []


def test_no_process_is_started_for_one_processor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(prepare, "ProcessPoolExecutor", None)
    assert [each.state for each in prepare_all(["nothing", "nobody"], 1, tmp_path)] == ["left out"] * 2


# -- the search ------------------------------------------------------------------------------------------------


@define
class FakeChild(WatchedProcess):
    """A fake child that returns times by name. fails: (job, candidate) -> error to raise instead."""

    seconds: float = 1.0
    times: dict[str, float] = field(factory=dict[str, float])
    fails: dict[tuple[object, str], BaseException] = field(factory=dict[tuple[object, str], BaseException])
    jobs: list[tuple[str, list[str]]] = field(factory=list[tuple[str, list[str]]])

    def call(self, work: Callable[..., object], *arguments: object) -> Medians:
        (job,) = arguments
        assert isinstance(job, Job)
        self.jobs.append((work.__name__, list(job.paths)))
        for (failing, name), problem in self.fails.items():
            if failing is work and name in job.paths:
                self.last_note = name
                raise problem
        times = {name: self.times.get(name, 100.0 + place) for place, name in enumerate(job.paths)}
        regimes = ["brief"] if work is measure_brief else ["sustained", "duty-cycled"]
        return Medians(dict.fromkeys(regimes, times))


@pytest.fixture(autouse=True)
def _folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("ARGUS_CACHE_DIR", str(tmp_path))
    tuning_db.clear_cache()
    yield
    tuning_db.clear_cache()


def hung() -> ArgusError:
    return ArgusError(Diagnostic("E410", "error", "it hangs"))


def test_the_fastest_is_kept_and_then_selected() -> None:
    child = FakeChild(times={"small": 50.0, "skinny": 60.0})

    (result,) = stored_results(CARD, search_shapes(child, [SHAPE], PATHS))

    assert result.best == "small"
    assert result.ratios()["sustained"] == 104.0 / 50.0
    assert tuning_db.load_choices(CARD) == {
        Key(SHAPE): TunedConfig("small", {"sustained": 50.0, "duty-cycled": 50.0}, len(NAMES), finished=True)
    }
    assert select(*SHAPE, device=CARD) == "small"


def test_finalists_are_the_fastest_and_the_models_choice() -> None:
    child = FakeChild(times={"clustered_bands": 900.0})

    list(search_shapes(child, [SHAPE], PATHS))

    (_, every), (_, final) = child.jobs
    assert every == list(NAMES)
    assert len(final) == FINALISTS + 1
    assert final[-1] == select(*SHAPE) == "clustered_bands"


def test_a_candidate_that_hangs_is_lost_and_the_others_continue() -> None:
    child = FakeChild(times={"small": 50.0}, fails={(measure_brief, "clustered"): hung()})

    first, second = search_shapes(child, [SHAPE, OTHER], PATHS)

    assert first.best == second.best == "small"
    assert (first.lost, second.lost) == ({"clustered": "E410: it hangs"}, {})
    assert ["clustered" in names for _, names in child.jobs] == [True, *[False] * 4]


def test_errors_unrelated_to_a_candidate_end_the_search() -> None:
    child = FakeChild(fails={(measure_brief, "small"): ArgusError(Diagnostic("E408", "error", "no memory"))})
    with pytest.raises(ArgusError, match="no memory"):
        list(search_shapes(child, [SHAPE], PATHS))


def test_finalists_that_hang_leave_the_brief_times() -> None:
    child = FakeChild(times={"small": 50.0}, fails={(measure_thorough, "small"): hung()})

    (result,) = stored_results(CARD, search_shapes(child, [SHAPE], PATHS))

    assert not result.finished
    assert tuning_db.load_choices(CARD)[Key(SHAPE)].config == "small"


def test_an_interrupted_search_stores_its_results() -> None:
    child = FakeChild(times={"small": 50.0})
    results = stored_results(CARD, search_shapes(child, [OTHER, SHAPE], PATHS))
    assert next(results).finished
    child.fails[measure_thorough, "small"] = KeyboardInterrupt()

    assert not next(results).finished
    with pytest.raises(KeyboardInterrupt):
        next(results)

    assert {key.shape: found.finished for key, found in tuning_db.load_choices(CARD).items()} == {
        OTHER: True,
        SHAPE: False,
    }


def test_an_unfinished_choice_does_not_displace_a_finished_one() -> None:
    done = TunedConfig("columns_224", {"sustained": 1.0}, 9)
    tuning_db.store_choices(CARD, {Key(SHAPE): done})
    child = FakeChild(fails={(measure_thorough, "small"): hung(), (measure_thorough, "cooperative"): hung()})

    list(stored_results(CARD, search_shapes(child, [SHAPE], PATHS)))

    assert tuning_db.load_choices(CARD) == {Key(SHAPE): done}
