import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.optimizer.evaluators import Cluster, Here, Processes
from argus.optimizer.judgement import Judgement


def judge(name: str, text: str = "") -> Judgement:
    del text
    match name:
        case "hangs":
            time.sleep(600)
        case "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        case "starts":
            subprocess.Popen(["sleep", "600"])  # noqa: S607 reason: a child that outlives its parent
            time.sleep(600)
        case "stumbles":
            raise ZeroDivisionError("by zero")
        case "fills":
            bytearray(1 << 33)
        case "late":
            time.sleep(1.0)
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


def test_what_stops_the_gate_itself_loses_its_candidate_alone() -> None:
    here, pool = Here(judge), Processes(judge, 1, seconds=60.0, memory=4 << 30)
    stumbled = here.result("stumbles", here.submit("stumbles"))
    found = [pool.result(name, pool.submit(name)) for name in ("stumbles", "fills", "fine")]
    pool.close()

    assert [each.outcome for each in (stumbled, *found)] == ["lost", "lost", "lost", "timed"]
    assert found[0].why == stumbled.why == "what judges it failed, a fault of Argus: ZeroDivisionError: by zero"
    assert "MemoryError" in found[1].why


def test_a_candidate_beside_one_that_is_stopped_is_judged_again() -> None:
    pool = Processes(judge, 2, seconds=60.0)
    assert pool.result("fine", pool.submit("fine")).outcome == "timed"
    flying = [(name, pool.submit(name)) for name in ("hangs", "late")]
    pool.seconds = 0.5
    stuck = pool.result(*flying[0])
    pool.seconds = 60.0
    beside = pool.result(*flying[1])
    pool.close()

    assert (stuck.outcome, beside.outcome) == ("lost", "timed")


def test_what_a_worker_has_started_ends_with_it() -> None:
    before = sleeping()
    pool = Processes(judge, 1, seconds=60.0)
    assert pool.result("fine", pool.submit("fine")).outcome == "timed"
    pool.seconds = 2.0
    assert pool.result("starts", pool.submit("starts")).outcome == "lost"
    deadline = time.monotonic() + 10.0
    while sleeping() - before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not sleeping() - before


def sleeping() -> set[str]:
    """Processes of this machine that sleep for ten minutes."""
    found: set[str] = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if path.read_bytes() == b"sleep\0600\0":
                found.add(path.parent.name)
    return found


UNGUARDED = """
import sys
from argus.optimizer.evaluators import Processes
from tests.optimizer.test_evaluators import judge
print("begun", flush=True)
pool = Processes(judge, 2, seconds=60.0)
found = [pool.result(name, future) for name, future in [(name, pool.submit(name)) for name in ("one", "three")]]
print([each.microseconds for each in found], *(each.why for each in found), flush=True)
sys.stdin.read()
"""


def test_a_script_without_a_guard_is_run_once_and_leaves_nothing_when_it_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED, encoding="utf-8")
    process = subprocess.Popen(  # noqa: S603 reason: our own interpreter
        [sys.executable, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
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
