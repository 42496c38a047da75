"""Hostile texts: each does no harm, and the answer says why the text was rejected."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path
from time import monotonic

import pytest
from attrs import evolve

from argus.runtime.sandbox import Answer
from argus.runtime.sandbox.isolation import NAMES, Name, probe_isolation
from argus.runtime.sandbox.mounts import SCRATCH, sandbox_mounts
from argus.runtime.sandbox.request import TRACING
from tests.runtime.sandbox.hostile import KERNEL, SHORT, WRONG, alive, marked, ran, refused, token, verdict

HERE = [name for name in NAMES if probe_isolation(name) is None]
pytestmark = pytest.mark.parametrize("on", HERE)


# -- what a text may do ----------------------------------------------------------------------------------------------


def test_a_good_text_is_proved_and_a_wrong_one_refuted(on: Name) -> None:
    assert verdict(ran("", on=on)) == "proved"
    assert verdict(ran("print('hello')", kernel=WRONG, on=on)) == "refuted"


# -- processes -------------------------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_a_fork_bomb_ends_with_its_process(on: Name) -> None:
    name = token()
    bomb = f"import os\n{marked(name)}\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass"
    # On a busy machine the limit of loading may strike ahead of the limits of the process.
    said = refused(ran(bomb, tracing=SHORT, on=on), "E942", "E006")
    assert any(limit in said for limit in ("killed with all", "of a processor", "took longer than"))
    assert alive(name) == []


@pytest.mark.nightly
def test_daemons_and_handlers_at_exit_do_not_outlive_it(on: Name) -> None:
    name = token()
    text = f"""
import atexit, os, threading, time
{marked(name)}
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
atexit.register(time.sleep, 600)
"""
    refused(ran(text, tracing=SHORT, on=on), "E942")
    assert alive(name) == []


@pytest.mark.nightly
def test_signals_reach_no_process_outside(on: Name) -> None:
    got: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: got.append(number))
    try:
        text = f"""
import os, signal
for process in (os.getppid(), {os.getpid()}, {os.getppid()}, -1):
    for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGKILL):
        try:
            if process:
                os.kill(process, number)
        except OSError:
            pass
"""
        answer = ran(text, on=on)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert got == []
    if isinstance(answer, Answer):
        assert verdict(answer) == "proved"
    else:
        refused(answer, "E942", "E944")


@pytest.mark.share(48, among="runtime: sandbox: hostile")
@pytest.mark.parametrize("end", ["sys.exit(0)", "raise SystemExit('proved')", "os._exit(0)"])
def test_an_exit_is_reported_at_its_line(on: Name, end: str) -> None:
    shown = refused(ran(f"import os, sys\n{end}", on=on), "E003")
    assert ("os._exit" if "os." in end else "sys.exit") in shown


@pytest.mark.share(48, among="runtime: sandbox: hostile")
@pytest.mark.parametrize(
    "end",
    [
        "posix._exit(0)",
        "os.kill(os.getpid(), 11)",
        "os.abort()",
        "os.execv('/bin/true', ['true'])",
        "os.execv('/bin/echo', ['echo', '{\"verdict\": \"proved\"}'])",
        "ctypes.string_at(0)",
    ],
)
def test_a_process_that_ends_or_is_replaced_yields_no_kernel(on: Name, end: str) -> None:
    answer = ran(f"import ctypes, os, posix\n{end}", on=on)
    if "os.kill" in end and isinstance(answer, Answer):
        assert verdict(answer) == "proved"  # the first process of a namespace does not hear its own signals
        return
    refused(answer, "E944", "E945")


# -- files and what they hold ----------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_nothing_is_written_outside_of_the_scratch_folder(on: Name, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    target = tmp_path / "written"
    places = [str(target), "/tmp/argus-written", "/usr/written", "/written", str(Path.home() / "written")]  # noqa: S108
    text = f"""
done = []
for place in {places!r}:
    try:
        open(place, "w").write("harm")
        done.append(place)
    except OSError:
        pass
assert not done, done
open("/scratch/mine", "w").write("mine")
"""
    assert verdict(ran(text, on=on)) == "proved"
    assert not any(Path(place).exists() for place in places)
    assert not Path("/scratch/mine").exists()


@pytest.mark.nightly
def test_the_package_that_traces_cannot_be_changed_on_disk(on: Name) -> None:
    text = """
import argus, pathlib, site
for folder in (pathlib.Path(argus.__file__).parent, *map(pathlib.Path, site.getsitepackages())):
    try:
        (folder / "sitecustomize.py").write_text("import os; os._exit(0)")
    except OSError:
        continue
    raise AssertionError(folder)
"""
    assert verdict(ran(text, on=on)) == "proved"


def test_secret_files_are_not_there(on: Name, tmp_path: Path) -> None:
    """No file is seen but those that are mounted, also by way of another process's root."""
    tmp_path.chmod(0o755)
    secret = tmp_path / "key"
    secret.write_text("s3cret", encoding="utf-8")
    mounts = sandbox_mounts()
    given = (*mounts.paths, *(name for name, _ in mounts.links), "/proc", "/dev", SCRATCH)
    text = f"""
import os
assert not any(map(os.path.exists, [{str(secret)!r}, {str(Path.cwd() / "tests")!r}]))
given = {given!r}
found = []
def look(folder):
    for entry in os.scandir(folder):
        if entry.path not in given:
            inner = entry.is_dir(follow_symlinks=False) and any(each.startswith(entry.path + "/") for each in given)
            look(entry.path) if inner else found.append(entry.path)
look("/")
assert not found, found
for process in filter(str.isdigit, os.listdir("/proc")):
    try:
        root = os.listdir(f"/proc/{{process}}/root")
    except OSError:
        continue
    assert sorted(root) == sorted(os.listdir("/")), root
"""
    assert verdict(ran(text, on=on)) == "proved"


def test_variables_of_the_environment_are_not_inherited(on: Name, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "s3cret")
    monkeypatch.setenv("PYTHONSTARTUP", "/scratch/x.py")
    text = """
import os
seen = repr(dict(os.environ))
for process in [each for each in os.listdir("/proc") if each.isdigit()]:
    try:
        seen += open(f"/proc/{process}/environ", "rb").read().decode()
    except OSError:
        continue
assert "s3cret" not in seen and "PYTHONSTARTUP" not in seen, seen
"""
    assert verdict(ran(text, on=on)) == "proved"


# -- network ---------------------------------------------------------------------------------------------------------


def test_no_network_is_reached_not_even_this_machine(on: Name) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        port = server.getsockname()[1]
        text = f"""
import socket
for address in (("127.0.0.1", {port}), ("192.0.2.1", 80), ("1.1.1.1", 53)):
    try:
        socket.create_connection(address, timeout=1)
    except OSError:
        continue
    raise AssertionError(address)
"""
        assert verdict(ran(text, on=on)) == "proved"
        with pytest.raises(TimeoutError):
            server.accept()


# -- time and memory -------------------------------------------------------------------------------------------------


@pytest.mark.share(12, among="endless loops")
@pytest.mark.parametrize(
    "loop",
    [
        "while True: pass",
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
    ],
)
def test_an_endless_loop_of_python_is_stopped(on: Name, loop: str) -> None:
    refused(ran(loop, tracing=SHORT, on=on), "E006", "E942")


@pytest.mark.share(12, among="endless loops")
@pytest.mark.parametrize(
    "loop", ["10 ** 10 ** 8", "import re\nre.match('(a*)*b', 'a' * 64)", "import time\ntime.sleep(600)"]
)
def test_an_endless_loop_in_c_is_killed(on: Name, loop: str) -> None:
    start = monotonic()
    deaf = "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))"
    refused(ran(f"{deaf}\n{loop}", tracing=SHORT, on=on), "E942")
    assert monotonic() - start < SHORT.wall_seconds + 15


@pytest.mark.nightly
def test_an_endless_loop_while_a_kernel_is_traced_is_stopped(on: Name) -> None:
    kernel = KERNEL.replace("    x = registers", "    while True:\n        pass\n    x = registers")
    refused(ran("", kernel=kernel, tracing=SHORT, on=on), "E006", "E942")


@pytest.mark.nightly
def test_memory_is_limited(on: Name) -> None:
    text = "held = []\nwhile True:\n    held.append(bytearray(1 << 28))"
    assert "memory" in refused(ran(text, on=on), "E003", "E943").lower()


@pytest.mark.nightly
def test_the_memory_of_many_processes_is_limited_by_their_number(on: Name) -> None:
    name = token()
    text = f"""
import os, posix, time
{marked(name)}
started = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(600)
        started += 1
except OSError:
    pass
assert started < {TRACING.processes}, started
print(started)
posix._exit(3)
"""
    assert "status 3" in refused(ran(text, on=on), "E944")
    assert alive(name) == []


@pytest.mark.share(48, among="runtime: sandbox: hostile")
@pytest.mark.parametrize("where", ["1", "2"])
def test_an_output_bomb_is_cut_off(on: Name, where: str) -> None:
    text = f"import os\nwhile True:\n    os.write({where}, b'x' * (1 << 20))"
    assert "wrote more than" in refused(ran(text, on=on), "E943")


@pytest.mark.nightly
def test_a_file_bomb_fills_nothing_but_its_scratch_folder(on: Name) -> None:
    text = """
written = 0
try:
    for number in range(64):
        with open(f"/scratch/{number}", "wb") as file:
            for _ in range(8):
                written += file.write(bytes(1 << 20))
except OSError:
    pass
assert written <= 1 << 24, written
"""
    assert verdict(ran(text, on=on)) == "proved"


@pytest.mark.nightly
def test_deep_recursion_is_reported(on: Name) -> None:
    refused(ran("def deep(n):\n    return deep(n + 1)\ndeep(0)", on=on), "E003")
    refused(ran("import sys\nsys.setrecursionlimit(1 << 30)\nnext_ = lambda n: next_(n + 1)\nnext_(0)",
                tracing=SHORT, on=on), "E003", "E942", "E943", "E944")  # fmt: skip


@pytest.mark.nightly
def test_a_huge_program_is_refused(on: Name) -> None:
    kernel = KERNEL.replace("    copy(x * 2.0", "    for _ in range(300_000):\n        x = x * 1.0\n    copy(x * 2.0")
    refused(ran("", kernel=kernel, tracing=evolve(SHORT, wall_seconds=12.0, cpu_seconds=12), on=on),
            "E006", "E942", "E943", "E945")  # fmt: skip
