"""Runs a process in isolation from this machine; each kind of isolation is probed before it is used.

The kinds are `bwrap` (bubblewrap), and the Linux namespaces that it uses, set up by `jail.py`. Both give a process its
own users, processes, mounts and network; `enter.py` sets its limits inside.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Literal

from attrs import asdict, frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.runtime.sandbox.mounts import SCRATCH, Mounts, sandbox_mounts
from argus.runtime.sandbox.process import ProcessResult, run_process
from argus.runtime.sandbox.request import Limits

Name = Literal["bwrap", "namespaces"]
NAMES: tuple[Name, ...] = ("bwrap", "namespaces")
_HERE = Path(__file__).parent
_ALONE = (sys.executable, "-I", "-S")
"""A Python interpreter with the standard library alone."""
_ALIVE = 3
_PROBE = Limits(wall_seconds=20.0, cpu_seconds=5, memory_bytes=1 << 30, processes=8, file_bytes=1 << 20)


@frozen
class Missing:
    """A kind of isolation that does not work on this machine, and why."""

    why: str


def run_isolated(name: Name, module: Sequence[str], given: bytes, limits: Limits) -> ProcessResult:
    """Run Python in isolation. module: its arguments. given: its standard input. limits: its resource limits.

    Raises ArgusError: E408 where no process can be started.
    """
    with _command(name, [sys.executable, "-P", "-s", "-B", *module], limits, sandbox_mounts()) as command:
        return run_process(command, given, limits)


@contextmanager
def _command(name: Name, inside: list[str], limits: Limits, files: Mounts) -> Generator[list[str]]:
    alive = None if name == "bwrap" else _ALIVE
    wanted = {"limits": asdict(limits), "environment": files.environment(), "command": inside, "alive": alive}
    enter = [*_ALONE, str(_HERE / "enter.py"), json.dumps(wanted)]
    if name == "bwrap":
        yield [*_bubble(limits, files), *enter]
        return
    with tempfile.TemporaryDirectory(prefix="argus-root-") as root:
        apart: dict[str, object] = {"root": root, "binds": files.paths, "links": files.links}
        apart |= {"scratch": limits.file_bytes, "enter": enter, "alive": _ALIVE}
        yield [*_ALONE, str(_HERE / "jail.py"), json.dumps(apart)]


def _bubble(limits: Limits, files: Mounts) -> list[str]:
    apart = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    # Root becomes user nobody inside, which needs two capabilities and no user namespace.
    user = ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"] if os.geteuid() == 0 else ["--unshare-user"]
    command = [shutil.which("bwrap") or "bwrap", *apart, *user, "--die-with-parent", "--new-session"]
    # bwrap would create these folders with permissions for root alone.
    above = {str(folder) for path in files.paths for folder in Path(path).parents}
    for folder in sorted(above - {"/"}):
        command += ["--perms", "0755", "--dir", folder]
    for path in files.paths:
        command += ["--ro-bind", path, path]
    for path, target in files.links:
        command += ["--symlink", target, path]
    for device in ("null", "zero", "random", "urandom"):
        command += ["--dev-bind", f"/dev/{device}", f"/dev/{device}"]
    command += ["--perms", "0777", "--size", str(limits.file_bytes), "--tmpfs", SCRATCH, "--proc", "/proc"]
    return [*command, "--remount-ro", "/", "--"]


# -- probes ----------------------------------------------------------------------------------------------------------


@cache
def probe_isolation(name: Name) -> Missing | None:
    """None if this kind of isolation works here, as shown by a process inside that tried to break out and could not."""
    if name == "bwrap" and shutil.which("bwrap") is None:
        return Missing("no program `bwrap`")
    if not sys.platform.startswith("linux"):
        return Missing(f"no namespaces on {sys.platform}")
    with tempfile.TemporaryDirectory(prefix="argus-probe-") as folder:
        secret = Path(folder) / "secret"
        secret.write_text("secret", encoding="ascii")
        secret.chmod(0o644)
        Path(folder).chmod(0o755)
        try:
            ended = run_isolated(name, ["-S", str(_HERE / "probe.py"), str(secret), str(os.getpid())], b"", _PROBE)
        except ArgusError as problem:
            return Missing(problem.diagnostic.message)
    said = ended.output.decode(errors="replace").strip()
    if ended.status == 0 and said == "contained":
        return None
    return Missing(said or (ended.said.splitlines() or [f"a process in it ended with status {ended.status}"])[-1])


Probe = Callable[[Name], Missing | None]


def choose_isolation(probe: Probe = probe_isolation) -> Name:
    """The first kind of isolation that works here. Raises ArgusError: E941 where none does."""
    why: list[tuple[str, str]] = []
    for name in NAMES:
        missing = probe(name)
        if missing is None:
            return name
        why.append((name, missing.why))
    message = "the text of a kernel is not run: no kind of isolation works on this machine"
    repair = (
        "install bubblewrap (`bwrap`), or allow namespaces to ordinary users "
        "(sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0); "
        "a container needs them allowed from outside"
    )
    raise ArgusError(Diagnostic("E941", "error", message, facts=tuple(why), help=repair))
