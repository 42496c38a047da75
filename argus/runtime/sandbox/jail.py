"""Isolates a process by Linux namespaces, using Python alone: it sees some folders, its own processes, and nothing
else.

Run by its path with the standard library alone: `python -I -S jail.py SPECIFICATION`, a JSON object of

    root         an empty folder, the mount point of the new root
    binds        paths to bind-mount read-only under their own names
    links        pairs of a symbolic link and its target
    scratch      size in bytes of /scratch, a tmpfs that lives as long as the process
    enter        the command to run inside, `enter.py` with its specification
    alive        the file descriptor, inside, of a pipe that closes when this process ends

The process inside is process 1 of its namespace: all others there end when it does, and it ends with this one.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

_NEW_MOUNTS, _NEW_NAME, _NEW_IPC = 0x0002_0000, 0x0400_0000, 0x0800_0000
_NEW_USER, _NEW_PROCESSES, _NEW_NETWORK = 0x1000_0000, 0x2000_0000, 0x4000_0000
_ALL = _NEW_NAME | _NEW_IPC | _NEW_PROCESSES | _NEW_NETWORK
_NO_SUID, _NO_DEVICES, _NO_EXECUTION, _REMOUNT, _READ_ONLY = 2, 4, 8, 32, 1
_BIND, _DEEP, _PRIVATE = 4096, 16384, 1 << 18
_DETACH = 2
_MOUNT_SETATTR, _HERE, _RECURSIVE = 442, -100, 0x8000
_DIE_WITH_PARENT = 1
_DEVICES = ("null", "zero", "random", "urandom")

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> NoReturn:
    """Run the command inside; exits with its status, or 128 plus the number of the signal that ended it."""
    wanted = json.loads(sys.argv[1])
    _die_with_parent()
    _unshare(root=os.geteuid() == 0)
    alive = os.pipe()
    inside = os.fork()
    if inside == 0:
        os.close(alive[1])
        _inside(wanted, alive[0])
    _, status = os.waitpid(inside, 0)
    ended = os.waitstatus_to_exitcode(status)
    os._exit(ended if ended >= 0 else 128 - ended)


def _die_with_parent() -> None:
    _check(_libc.prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0), "prctl")


def _unshare(*, root: bool) -> None:
    """Enter new namespaces; any user but root also needs a new user namespace, which maps only that user."""
    user, group = os.geteuid(), os.getegid()
    _check(_libc.unshare(_ALL if root else _ALL | _NEW_USER), "unshare")
    if root:
        return
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {user} 1")
    _write("/proc/self/gid_map", f"{group} {group} 1")


def _inside(wanted: dict[str, Any], alive: int) -> NoReturn:
    """alive: a pipe that closes when the outer process ends, possibly before this one has asked to die with it."""
    try:
        _die_with_parent()
        if select.select([alive], [], [], 0)[0]:
            os._exit(1)
        _mount_root(wanted)
        os.dup2(alive, wanted["alive"])
        os.set_inheritable(wanted["alive"], True)
        os.closerange(wanted["alive"] + 1, 256)
        os.execv(wanted["enter"][0], wanted["enter"])
    except BaseException as problem:  # noqa: BLE001 reason: the forked child must never return to the caller
        os.write(2, f"no isolation: {type(problem).__name__}: {problem}\n".encode())
        os._exit(125)


def _mount_root(wanted: dict[str, Any]) -> None:
    """Mount a new root with the specified contents, and make it the process's root."""
    new = wanted["root"]
    _check(_libc.unshare(_NEW_MOUNTS), "unshare")
    _mount("none", "/", None, _DEEP | _PRIVATE)
    _mount("tmpfs", new, "tmpfs", _NO_SUID | _NO_DEVICES, "size=4m,mode=755")
    for path in wanted["binds"]:
        _bind(path, new + path, sealed=True)
    for name in _DEVICES:
        _bind(f"/dev/{name}", f"{new}/dev/{name}", sealed=False)
    for path, target in wanted["links"]:
        Path(new + path).symlink_to(target)
    Path(f"{new}/scratch").mkdir()
    _mount("tmpfs", f"{new}/scratch", "tmpfs", _NO_SUID | _NO_DEVICES, f"size={wanted['scratch']},mode=777")
    Path(f"{new}/proc").mkdir()
    _mount("proc", f"{new}/proc", "proc", _NO_SUID | _NO_DEVICES | _NO_EXECUTION)
    os.chdir(new)
    _check(_libc.pivot_root(b".", b"."), "pivot_root")
    _check(_libc.umount2(b".", _DETACH), "umount2")
    os.chdir("/")
    _mount("none", "/", None, _REMOUNT | _READ_ONLY | _NO_SUID | _NO_DEVICES)


def _bind(path: str, to: str, *, sealed: bool) -> None:
    """Bind-mount a file or folder; sealed: read-only, recursively."""
    place = Path(to)
    if Path(path).is_dir():
        place.mkdir(parents=True, exist_ok=True)
    else:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    _mount(path, to, None, _BIND | _DEEP)
    if sealed:
        attributes = struct.pack("QQQQ", _READ_ONLY | _NO_SUID | _NO_DEVICES, 0, 0, 0)
        call: Callable[..., int] = _libc.syscall
        _check(call(_MOUNT_SETATTR, _HERE, to.encode(), _RECURSIVE, attributes, len(attributes)), "mount_setattr")


def _mount(source: str, to: str, kind: str | None, flags: int, options: str = "") -> None:
    named = None if kind is None else kind.encode()
    _check(_libc.mount(source.encode(), to.encode(), named, ctypes.c_ulong(flags), options.encode()), f"mount {to}")


def _write(path: str, text: str) -> None:
    Path(path).write_text(text, encoding="ascii")


def _check(result: int, what: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    main()
