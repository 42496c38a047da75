import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.runtime.processes.watchdog import WatchedProcess
from argus.search.evaluation.evaluators import DaskCluster, InProcess
from argus.search.evaluation.judgement import Judgement
from argus.search.evaluation.processes import WorkerProcesses
from tests.runtime.test_watchdog import adding


def judge(name: str, text: str = "") -> Judgement:
    match name:
        case "hangs":
            time.sleep(600)
        case "compiles":
            subprocess.run([sys.executable, "-c", "import time; time.sleep(600)", text], check=True)  # noqa: S603 reason: ours
        case "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        case "stumbles":
            raise ZeroDivisionError("by zero")
        case "asks":
            with WatchedProcess(60.0) as gpu:
                assert gpu.call(adding, 2, 3) == 5
        case "fills":
            bytearray(1 << 33)
        case "multiplies":
            return Judgement(name, "timed", "timing", why=os.environ.get("OPENBLAS_NUM_THREADS", ""))
        case _:
            pass
    device = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return Judgement(name, "timed", "timing", why=f"{os.getpid()} {device}", microseconds=float(len(name)))


@pytest.mark.share(3)
def test_a_process_that_hangs_is_stopped_and_the_next_candidate_has_another() -> None:
    pool = WorkerProcesses(judge, 1, seconds=15.0)
    fine = pool.submit("fine")
    first = _told(pool, "fine", fine)
    pool.seconds = 0.5
    stuck = _told(pool, "hangs", pool.submit("hangs"))
    pool.seconds = 15.0
    second = _told(pool, "fine", pool.submit("fine"))
    pool.close()

    assert (stuck.outcome, stuck.microseconds) == ("lost", None)
    assert "0.5 s" in stuck.why
    assert first.microseconds == second.microseconds == 4.0
    assert first.why != second.why


def test_a_process_that_dies_loses_its_candidate_alone() -> None:
    pool = WorkerProcesses(judge, 1, seconds=15.0)
    gone = _told(pool, "dies", pool.submit("dies"))
    after = _told(pool, "fine", pool.submit("fine"))
    pool.close()

    assert gone.outcome == "lost"
    assert after.outcome == "timed"


def processes_of(mark: str) -> list[int]:
    """Processes with this command-line argument."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            pass
    return found


def came(wanted: bool, mark: str) -> bool:
    """Wait until such a process exists, or does not exist."""
    for _ in range(300):
        if bool(processes_of(mark)) == wanted:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.share(3)
def test_a_candidate_out_of_time_has_no_judgement_and_is_killed_with_its_children() -> None:
    mark = f"mark-{os.getpid()}-left"
    pool = WorkerProcesses(judge, 2, seconds=60.0)
    stuck, fine = pool.submit("compiles", mark), pool.submit("fine")
    answered = pool.result("fine", fine, 60.0)
    assert came(True, mark)

    before = time.monotonic()
    assert pool.result("compiles", stuck, 0.5) is None
    assert pool.result("compiles", stuck, -1.0) is None
    pool.close()

    assert time.monotonic() - before < 5.0
    assert answered is not None
    assert answered.outcome == "timed"
    assert came(False, mark)


@pytest.mark.nightly
def test_a_hang_affects_no_other_candidate() -> None:
    pool = WorkerProcesses(judge, 2, seconds=15.0)
    first = [pool.submit("one"), pool.submit("two")]
    begun = [_told(pool, name, each) for name, each in zip(("one", "two"), first, strict=True)]
    stuck, other = pool.submit("hangs"), pool.submit("other")
    pool.seconds = 0.5
    lost = _told(pool, "hangs", stuck)
    pool.seconds = 15.0
    found, after = _told(pool, "other", other), _told(pool, "fine", pool.submit("fine"))
    pool.close()

    assert lost.outcome == "lost"
    assert [each.outcome for each in (*begun, found, after)] == ["timed"] * 4
    assert found.why in {each.why for each in begun}


def _told(pool: WorkerProcesses, name: str, future: Future[Judgement]) -> Judgement:
    found = pool.result(name, future)
    assert found is not None
    return found


ORPHANED = """
import sys, time
from argus.search.evaluation.processes import WorkerProcesses
from tests.search.evaluation.test_evaluators import judge
if __name__ == "__main__":
    pool = WorkerProcesses(judge, 1, 60.0)
    pool.submit("compiles", sys.argv[1][1:])
    time.sleep(600)
"""


@pytest.mark.nightly
def test_processes_end_with_their_parent(tmp_path: Path) -> None:
    mark = f"mark-{os.getpid()}-orphan"
    script = tmp_path / "begins.py"
    script.write_text(ORPHANED, encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    parent = subprocess.Popen([sys.executable, str(script), f"_{mark}"], env=environment)  # noqa: S603 reason: our own
    assert came(True, mark)
    parent.kill()
    parent.wait()

    assert came(False, mark)


def test_an_internal_failure_loses_only_its_candidate() -> None:
    here, pool = InProcess(judge), WorkerProcesses(judge, 1, seconds=60.0, memory=4 << 30)
    stumbled = here.result("stumbles", here.submit("stumbles"))
    found = [_told(pool, name, pool.submit(name)) for name in ("stumbles", "fills", "fine")]
    pool.close()

    assert stumbled is not None
    assert [each.outcome for each in (stumbled, *found)] == ["lost", "lost", "lost", "timed"]
    assert found[0].why == stumbled.why == "the gate failed, an error in Argus: ZeroDivisionError: by zero"
    assert "MemoryError" in found[1].why


UNGUARDED = """
import sys
from argus.search.evaluation.processes import WorkerProcesses
from tests.search.evaluation.test_evaluators import judge
print("begun", flush=True)
pool = WorkerProcesses(judge, 2, seconds=60.0)
found = [pool.result(name, future) for name, future in [(name, pool.submit(name)) for name in ("one", "three")]]
print([each.microseconds for each in found], *(each.why for each in found), flush=True)
sys.stdin.read()
"""


@pytest.mark.nightly
def test_a_script_without_a_guard_is_run_once_and_leaves_nothing_when_it_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED, encoding="utf-8")
    process = subprocess.Popen(  # noqa: S603 reason: our own interpreter
        [sys.executable, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
    )
    assert process.stdout is not None
    said = [process.stdout.readline().split() for _ in range(2)]
    workers = {int(word) for word in said[1][2:]}
    process.kill()
    process.communicate()

    assert [said[0], said[1][:2]] == [["begun"], ["[3.0,", "5.0]"]]
    assert workers
    deadline = time.monotonic() + 10.0
    while (left := {each for each in workers if Path(f"/proc/{each}").exists()}) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left


def test_a_worker_that_dies_before_initialisation_is_reported() -> None:
    pool = WorkerProcesses(judge, 1, seconds=60.0, memory=-(2**70))
    with pytest.raises(ArgusError, match="E905: a worker process ended before it was initialised"):
        pool.result("fine", pool.submit("fine"))
    pool.close()


@pytest.mark.share(4)
def test_workers_get_gpus_round_robin() -> None:
    pool = WorkerProcesses(judge, 3, seconds=30.0, devices=("4", "7"))
    flying = [(name, pool.submit(name)) for name in ("a", "b", "c", "d")]
    seen = {tuple(_told(pool, name, future).why.split()) for name, future in flying}
    pool.close()

    assert len(seen) == 3
    assert sorted(device for _, device in seen) == ["4", "4", "7"]


@pytest.mark.parametrize(("here", "there"), [(None, "1"), ("3", "3")])
def test_a_product_in_a_worker_takes_one_thread_unless_the_environment_says(
    here: str | None, there: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    if here is not None:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", here)
    pool = WorkerProcesses(judge, 1, seconds=15.0)
    told = _told(pool, "multiplies", pool.submit("multiplies"))
    pool.close()

    assert told.why == there
    assert os.environ.get("OPENBLAS_NUM_THREADS") == here


def test_what_is_no_fault_of_a_candidate_is_raised() -> None:
    def without_compiler(name: str, text: str) -> Judgement:
        del text
        raise ArgusError(Diagnostic("E303", "error", f"no compiler for {name}"))

    here = InProcess(without_compiler)
    with pytest.raises(ArgusError, match="E303"):
        here.result("a", here.submit("a"))


@pytest.mark.nightly
def test_a_dask_cluster_judges(tmp_path: Path) -> None:
    local: Any = import_module("distributed").LocalCluster
    with local(n_workers=2, threads_per_worker=1, dashboard_address=":0", local_directory=str(tmp_path)) as scheduler:
        cluster = DaskCluster(judge, scheduler.scheduler_address, seconds=60.0)
        flying = [(name, cluster.submit(name)) for name in ("one", "three")]
        found = [cluster.result(name, future) for name, future in flying]
        workers = cluster.workers
        asked = cluster.result("asks", cluster.submit("asks"))
        late = cluster.result("hangs", cluster.submit("hangs"), 0.5)
        before = time.monotonic()
        cluster.close()
        closing = time.monotonic() - before

    assert [each.microseconds for each in found if each] == [3.0, 5.0]
    assert asked is not None
    assert asked.outcome == "timed", asked.why
    assert late is None
    assert closing < 5.0
    assert workers == 2


@pytest.mark.nightly
def test_a_hang_or_crash_on_a_dask_cluster_is_killed_and_its_worker_continues(tmp_path: Path) -> None:
    mark = f"mark-{os.getpid()}-dask"
    local: Any = import_module("distributed").LocalCluster
    with local(n_workers=1, threads_per_worker=1, dashboard_address=":0", local_directory=str(tmp_path)) as scheduler:
        cluster = DaskCluster(judge, scheduler.scheduler_address, seconds=60.0)
        gone, stumbled, fine = (_of_cluster(cluster, name) for name in ("dies", "stumbles", "fine"))
        cluster.seconds = 3.0
        stuck = cluster.submit("compiles", mark)
        assert came(True, mark)
        late = cluster.result("compiles", stuck)
        assert came(False, mark)
        after = _of_cluster(cluster, "fine")
        cluster.close()

    assert (gone.outcome, gone.why) == ("lost", "the worker process died")
    assert stumbled.why == "the gate failed, an error in Argus: ZeroDivisionError: by zero"
    assert late is not None
    assert (late.outcome, late.why) == ("lost", "it took more than 3 s, and was stopped")
    assert [each.outcome for each in (fine, after)] == ["timed", "timed"]
    assert fine.why != after.why  # another process


def _of_cluster(cluster: DaskCluster, name: str) -> Judgement:
    found = cluster.result(name, cluster.submit(name))
    assert found is not None
    return found


@pytest.mark.nightly
def test_a_scheduler_that_does_not_answer_is_reported() -> None:
    with pytest.raises(ArgusError) as raised:
        DaskCluster(judge, "tcp://127.0.0.1:1", seconds=1.0)

    assert raised.value.diagnostic.code == "E905"


@pytest.mark.nightly
def test_a_lost_scheduler_is_reported(tmp_path: Path) -> None:
    local: Any = import_module("distributed").LocalCluster
    with local(n_workers=1, threads_per_worker=1, dashboard_address=":0", local_directory=str(tmp_path)) as scheduler:
        cluster = DaskCluster(judge, scheduler.scheduler_address, seconds=60.0)
        cluster.result("one", cluster.submit("one"))
        waiting = cluster.submit("hangs")
    with pytest.raises(ArgusError) as raised:
        cluster.result("hangs", waiting)
    cluster.close()

    assert raised.value.diagnostic.code == "E905"
    assert "is lost" in raised.value.diagnostic.message
