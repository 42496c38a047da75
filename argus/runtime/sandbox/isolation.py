"""What keeps a process apart from this machine, and whether it does so here: each kind is tried before it is used.

Either `bwrap` (bubblewrap), or the namespaces of Linux that it uses, entered by `jail.py`. Both give a process its own
users, processes, mounts and network; `enter.py` sets its limits inside.
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
from argus.runtime.sandbox.mounts import SCRATCH, Seen, seen
from argus.runtime.sandbox.process import Ended, ran
from argus.runtime.sandbox.request import Limits

Name = Literal["bwrap", "namespaces"]
NAMES: tuple[Name, ...] = ("bwrap", "namespaces")
_HERE = Path(__file__).parent
_ALONE = (sys.executable, "-I", "-S")
"""An interpreter with nothing but the standard library."""
_ALIVE = 3
_PROBE = Limits(wall_seconds=20.0, cpu_seconds=5, memory_bytes=1 << 30, processes=8, file_bytes=1 << 20)


@frozen
class Missing:
    """why: this kind of isolation does not hold here."""

    why: str


def contained(name: Name, module: Sequence[str], given: bytes, limits: Limits) -> Ended:
    """Run Python in isolation: its arguments, what it reads on its standard input, and what it may use.

    Raises ArgusError: E408 where no process can be started.
    """
    with _command(name, [sys.executable, "-P", "-s", "-B", *module], limits, seen()) as command:
        return ran(command, given, limits)


@contextmanager
def _command(name: Name, inside: list[str], limits: Limits, files: Seen) -> Generator[list[str]]:
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


def _bubble(limits: Limits, files: Seen) -> list[str]:
    apart = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    # Root becomes nobody inside, for which it needs two capabilities and no namespace of users.
    user = ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"] if os.geteuid() == 0 else ["--unshare-user"]
    command = [shutil.which("bwrap") or "bwrap", *apart, *user, "--die-with-parent", "--new-session"]
    # Folders that it would make itself, root alone may enter.
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


# -- which of them holds here ----------------------------------------------------------------------------------------


@cache
def probed(name: Name) -> Missing | None:
    """None if this kind of isolation holds here: a process in it has tried to reach out, and could not."""
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
            ended = contained(name, ["-S", str(_HERE / "probe.py"), str(secret), str(os.getpid())], b"", _PROBE)
        except ArgusError as problem:
            return Missing(problem.diagnostic.message)
    said = ended.output.decode(errors="replace").strip()
    if ended.status == 0 and said == "contained":
        return None
    return Missing(said or (ended.said.splitlines() or [f"a process in it ended with status {ended.status}"])[-1])


Probe = Callable[[Name], Missing | None]


def chosen(probe: Probe = probed) -> Name:
    """The first kind that holds here. Raises ArgusError: E941 where none does."""
    why: list[tuple[str, str]] = []
    for name in NAMES:
        missing = probe(name)
        if missing is None:
            return name
        why.append((name, missing.why))
    message = "the text of a kernel is not run: nothing here keeps it apart from this machine"
    repair = (
        "install bubblewrap (`bwrap`), or allow namespaces to ordinary users "
        "(sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0); "
        "a container needs them allowed from outside"
    )
    raise ArgusError(Diagnostic("E941", "error", message, facts=tuple(why), help=repair))
