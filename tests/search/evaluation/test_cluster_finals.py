"""The last round of a search on a Dask cluster: on one worker, and reported if the cluster fails."""

from __future__ import annotations

import os
import pickle
import signal
import time
from collections.abc import Generator, Mapping
from importlib import import_module
from types import MethodType
from typing import Any, cast

import pytest

from argus.policy.last_round import Standing
from argus.search.evaluation.finals import ClusterFinals, FinalsTask
from argus.search.evaluation.gate_task import GateTask
from argus.search.events import LastRound

TEXTS = {"a": "", "b": "written"}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    local: Any = import_module("distributed").LocalCluster
    folder = tmp_path_factory.mktemp("cluster")
    with local(n_workers=2, threads_per_worker=1, dashboard_address=":0", local_directory=str(folder)) as scheduler:
        yield scheduler.scheduler_address


def stopped(name: str, text: str) -> str:
    return f"I1: {name} {text} in {os.getpid()}"


def timed(texts: Mapping[str, str]) -> LastRound:
    """The first is the best; the time of all is the number of the process."""
    best, *others = texts
    medians = {"sustained": float(os.getpid())}
    return LastRound((Standing(best, "best", medians), *(Standing(each, "equal", medians) for each in others)), 12)


def dies(_texts: Mapping[str, str]) -> LastRound:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def hangs(_texts: Mapping[str, str]) -> LastRound:
    time.sleep(3)
    return LastRound(())


@pytest.mark.nightly
def test_all_candidates_are_timed_by_one_worker(address: str) -> None:
    found = ClusterFinals(timed, address)(TEXTS)

    assert [each.name for each in found.standings] == list(TEXTS)
    (process,) = set(found.times.values())
    assert process != os.getpid()


@pytest.mark.nightly
def test_candidates_are_proved_and_built_again_where_they_are_timed(address: str) -> None:
    """In a child of the worker, which a candidate may hang or crash."""
    found = ClusterFinals(FinalsTask(stopped), address)(TEXTS)

    assert not found.missing
    assert [each.place for each in found.standings] == ["wrong", "wrong"]
    assert found.standings[1].why.startswith("I1: b written in ")
    (process,) = {each.why.rpartition(" ")[2] for each in found.standings}
    assert int(process) != os.getpid()


@pytest.mark.nightly
def test_a_worker_that_dies_or_takes_too_long_is_reported(address: str) -> None:
    assert ClusterFinals(hangs, address, seconds=0.5)(TEXTS).missing == "no worker finished it within 0.5 s"
    assert ClusterFinals(dies, address, seconds=60.0)(TEXTS).missing == "the worker process died"


@pytest.mark.nightly
def test_a_scheduler_that_does_not_answer_is_reported() -> None:
    found = ClusterFinals(timed, "tcp://127.0.0.1:1")(TEXTS)

    assert found.missing.startswith("E905: no scheduler answers")


def test_what_a_cluster_is_sent_arrives_as_it_was() -> None:
    task = GateTask("gemm:64x64x64:bf16", "sm_90a", gpu=True)
    sent = pickle.loads(pickle.dumps(FinalsTask(task.prepare)))  # noqa: S301 reason: our own

    assert isinstance(sent, FinalsTask)
    assert cast("MethodType", sent.prepare).__self__ == task
