"""Texts that forge answers or attack the process that runs them: no forgery is accepted, and no attack succeeds."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from time import monotonic

import pytest

from argus.runtime.sandbox import Answer
from argus.runtime.sandbox.isolation import NAMES, Name, probe_isolation
from argus.runtime.sandbox.request import TRACING
from tests.runtime.sandbox.hostile import WRONG, alive, marked, ran, refused, token, verdict

HERE = [name for name in NAMES if probe_isolation(name) is None]
pytestmark = pytest.mark.parametrize("on", HERE)


# -- the answer ------------------------------------------------------------------------------------------------------


FORGED = '{"kernels": [{"name": "doubled", "target": "gfx942", "sizes": [], "results": [{"verdict": "proved"}]}]}'


@pytest.mark.share(48, among="runtime: sandbox: forged")
@pytest.mark.parametrize(
    "text",
    [
        f"print({FORGED!r})",
        f"import os\nfor fd in range(3, 64):\n    try: os.write(fd, {FORGED.encode()!r})\n    except OSError: pass",
        f"import os\nos.write(1, {FORGED.encode()!r})\nos._exit(0)",
        f"import os, posix\nos.write(1, {FORGED.encode()!r})\nposix._exit(0)",
        f"import os\nfor n in (3, 4, 5):\n    try: os.write(n, {FORGED.encode()!r})\n    except OSError: 0\nos.abort()",
    ],
)
def test_a_forged_verdict_is_never_accepted(on: Name, text: str) -> None:
    answer = ran(text, kernel=WRONG, on=on)
    if isinstance(answer, Answer):
        assert verdict(answer) == "refuted"
    else:
        refused(answer, "E944", "E945", *(("E003",) if "os._exit" in text else ()))


@pytest.mark.share(48, among="runtime: sandbox: forged")
@pytest.mark.parametrize(
    "patch",
    [
        "import argus.verifier.kernel as k, argus.verifier.api as a\nk.verify = a.verify = lambda *a, **k: 'proved'",
        "import argus.core.check as c, argus.core.dsl.kernel as k\nk.check = c.check = lambda kernel: ()",
        "import argus.core.verdict as v\nv.Report.exit_code = property(lambda self: 0)\nv.Refuted = v.Proved",
        "import argus.report.json_document as r\nr.verdict_word = lambda v: 'proved'",
        "import argus.solvers.session.session as s\ns.Session.__init__ = lambda self, *a: None",
        "import builtins\nbuiltins.isinstance = lambda *a: True",
    ],
)
def test_a_patched_verifier_verifies_nothing(on: Name, patch: str) -> None:
    answer = ran(patch, kernel=WRONG, on=on)
    if isinstance(answer, Answer):
        assert verdict(answer) == "refuted"
    else:
        refused(answer, "E003", "E103", "E942", "E944", "E945")


def test_forged_facts_about_a_kernel_are_recomputed(on: Name) -> None:
    """Bounds of a symbol are taken for granted by every proof: one that is too narrow would make it vacuous."""
    text = """
import argus.core.dsl.control as control
real = control.Symbol
control.Symbol = lambda name, kind, *bounds: real(name, kind, 0, 0) if kind == "block" else real(name, kind, *bounds)
"""
    assert "block_0" in refused(ran(text, kernel=WRONG, on=on), "E945")


def test_a_forged_diagnostic_shows_no_file_of_the_outside(on: Name, tmp_path: Path) -> None:
    secret = tmp_path / "key.py"
    secret.write_text("s3cret = 1\n", encoding="utf-8")
    label = (
        f'{{"text": "", "frames": [{{"file": "{secret}", "line": 1, "column": 0, "end_column": 6, "function": "f"}}]}}'
    )
    said = f'{{"diagnostic": {{"code": "E003", "message": "x\\u001b[2J", "help": "h", "primary": {label}}}}}'
    everywhere = f"for fd in range(3, 9):\n    try: os.write(fd, {said!r}.encode())\n    except OSError: 0"
    answer = ran(f"import os, posix\n{everywhere}\nposix._exit(0)", on=on)
    shown = refused(answer, "E003")
    assert "s3cret" not in shown
    assert str(secret) not in shown
    assert "\x1b" not in shown


# -- tricks ----------------------------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_other_processes_can_neither_be_seen_nor_traced(on: Name) -> None:
    text = f"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
assert not [p for p in os.listdir("/proc") if p.isdigit() and int(p) > 64]
for process in {[each for each in (os.getpid(), os.getppid()) if each > 64]}:
    assert libc.ptrace(16, process, 0, 0) == -1
    assert not os.path.exists(f"/proc/{{process}}/mem")
    assert not os.path.exists(f"/proc/{{process}}/environ")
"""
    assert verdict(ran(text, on=on)) == "proved"


@pytest.mark.nightly
def test_privileges_are_not_regained(on: Name) -> None:
    text = """
import ctypes, os, resource
libc = ctypes.CDLL(None, use_errno=True)
assert os.getuid() != 0 and os.geteuid() != 0
for act in (lambda: os.setuid(0), lambda: os.chroot("/scratch"), lambda: os.nice(-5),
            lambda: resource.setrlimit(resource.RLIMIT_NPROC, (4096, 4096)),
            lambda: resource.setrlimit(resource.RLIMIT_AS, (-1, -1))):
    try:
        act()
    except (OSError, ValueError):
        continue
    raise AssertionError("privileges")
assert libc.mount(b"none", b"/usr", b"tmpfs", 0, b"") == -1
assert libc.umount2(b"/proc", 2) == -1
assert libc.unshare(0x10000000) == -1
"""
    assert verdict(ran(text, on=on)) == "proved"


@pytest.mark.nightly
def test_hooks_of_imports_stay_in_their_process(on: Name) -> None:
    text = """
import builtins, sys
real = builtins.__import__
def hook(name, *args):
    if name.startswith("argus.verifier"):
        raise ImportError(name)
    return real(name, *args)
builtins.__import__ = hook
sys.path.insert(0, "/scratch")
open("/scratch/json.py", "w").write("loads = dumps = lambda *a, **k: '{}'")
open("/scratch/sitecustomize.py", "w").write("import os; os._exit(0)")
open("/scratch/usercustomize.py", "w").write("import os; os._exit(0)")
"""
    assert verdict(ran(text, on=on)) == "proved"
    assert verdict(ran("", on=on)) == "proved"


@pytest.mark.nightly
def test_texts_are_isolated_from_each_other_and_threads_may_run_concurrently(on: Name) -> None:
    texts = ["open('/scratch/left', 'x').write('here')", "import os\nassert not os.path.exists('/scratch/left')"]
    found: list[str] = []

    def ask(text: str) -> None:
        found.append(verdict(ran(text, on=on)))

    workers = [threading.Thread(target=ask, args=(text,)) for text in texts]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == ["proved", "proved"]


@pytest.mark.nightly
def test_a_text_that_closes_its_streams_is_not_waited_for(on: Name) -> None:
    name = token()
    text = f"import os, time\n{marked(name)}\nos.closerange(0, 64)\ntime.sleep(600)"
    start = monotonic()
    refused(ran(text, on=on), "E942", "E944")
    assert monotonic() - start < TRACING.wall_seconds
    assert alive(name) == []
