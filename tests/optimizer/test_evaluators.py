import os
import signal
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.optimizer.evaluators import Cluster, Here
from argus.optimizer.judgement import Judgement
from argus.optimizer.processes import Processes


def judge(name: str, text: str = "") -> Judgement:
    del text
    match name:
        case "hangs":
            time.sleep(600)
        case "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        case _:
            pass
    device = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return Judgement(name, "timed", "timing", why=f"{os.getpid()} {device}", microseconds=float(len(name)))


def test_a_process_that_hangs_is_stopped_and_the_next_candidate_has_another() -> None:
    pool = Processes(judge, 1, seconds=15.0)
    fine = pool.submit("fine")
    first = pool.result("fine", fine)
    pool.seconds = 0.5
    stuck = pool.result("hangs", pool.submit("hangs"))
    pool.seconds = 15.0
    second = pool.result("fine", pool.submit("fine"))
    pool.close()

    assert (stuck.outcome, stuck.microseconds) == ("lost", None)
    assert "0.5 s" in stuck.why
    assert first.microseconds == second.microseconds == 4.0
    assert first.why != second.why


def test_a_process_that_dies_loses_its_candidate_alone() -> None:
    pool = Processes(judge, 1, seconds=15.0)
    gone = pool.result("dies", pool.submit("dies"))
    after = pool.result("fine", pool.submit("fine"))
    pool.close()

    assert gone.outcome == "lost"
    assert after.outcome == "timed"


def test_each_worker_has_a_gpu_of_its_own() -> None:
    pool = Processes(judge, 2, seconds=30.0, devices=("4", "7"))
    flying = [(name, pool.submit(name)) for name in ("a", "b", "c", "d")]
    seen = {pool.result(name, future).why.split()[1] for name, future in flying}
    pool.close()

    assert seen <= {"4", "7"}
    assert seen


def test_what_is_no_fault_of_a_candidate_is_raised() -> None:
    def without_compiler(name: str, text: str) -> Judgement:
        del text
        raise ArgusError(Diagnostic("E303", "error", f"no compiler for {name}"))

    here = Here(without_compiler)
    with pytest.raises(ArgusError, match="E303"):
        here.result("a", here.submit("a"))


def test_a_dask_cluster_judges(tmp_path: Path) -> None:
    local: Any = import_module("distributed").LocalCluster
    with local(n_workers=2, threads_per_worker=1, dashboard_address="", local_directory=str(tmp_path)) as scheduler:
        cluster = Cluster(judge, scheduler.scheduler_address, seconds=60.0)
        flying = [(name, cluster.submit(name)) for name in ("one", "three")]
        found = [cluster.result(name, future) for name, future in flying]
        workers = cluster.workers
        cluster.close()

    assert [each.microseconds for each in found] == [3.0, 5.0]
    assert workers == 2


def test_a_scheduler_that_does_not_answer_is_told() -> None:
    with pytest.raises(ArgusError) as raised:
        Cluster(judge, "tcp://127.0.0.1:1", seconds=1.0)

    assert raised.value.diagnostic.code == "E905"
