"""The sandbox's last step before the contained command: drops privileges, sets limits and a seccomp filter, then execs.

Run by its path with the standard library alone, inside the namespaces: `python -I -S enter.py SPECIFICATION`, a JSON
object of `limits`, `environment`, `command`, and `alive`: the number of a pipe that closes when the parent process
ends, or null if the parent kills this process itself.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import resource
import select
import signal
import struct
import sys
from pathlib import Path
from typing import Any, NoReturn

_PARENT_DEATH, _NO_NEW_PRIVILEGES, _SECCOMP, _BY_FILTER = 1, 38, 22, 2
_MAY_BE_WRITTEN_OF, _NEW_USERS = 4, 0x1000_0000
_NOBODY = 65_534
_ITSELF = f"{_NOBODY} {_NOBODY} 1"

_FILTERED = {
    # machine: its audit number, the number of `clone`, and the refused calls: namespaces and mounts, other processes,
    # memory that no limit counts, keys and the kernel itself
    "x86_64": (
        0xC000_003E,
        56,
        (
            *(272, 308, 165, 166, 155, 161, 428, 429, 430, 431, 432, 433, 442, 304),
            *(101, 310, 311, 312, 438),
            *(319, 29, 425),
            *(248, 249, 250, 321, 298, 323, 246, 175, 313, 176, 167, 169),
        ),
    ),
    "aarch64": (
        0xC000_00B7,
        220,
        (
            *(97, 268, 40, 39, 41, 51, 428, 429, 430, 431, 432, 433, 442, 265),
            *(117, 270, 271, 272, 438),
            *(279, 194, 425),
            *(217, 218, 219, 280, 241, 282, 104, 105, 273, 106, 224, 142),
        ),
    ),
}
"""System call numbers of Linux by architecture [Linux, include/uapi/linux/audit.h;
arch/x86/entry/syscalls/syscall_64.tbl; include/uapi/asm-generic/unistd.h]: unshare setns mount umount2 pivot_root
chroot open_tree move_mount fsopen fsconfig fsmount fspick mount_setattr open_by_handle_at; ptrace process_vm_readv
process_vm_writev kcmp pidfd_getfd; memfd_create shmget io_uring_setup; add_key request_key keyctl bpf perf_event_open
userfaultfd kexec_load init_module finit_module
delete_module swapon reboot."""
_CLONE3 = 435
_NAMESPACES = 0x7E02_0080
"""Flags of `clone` for new namespaces."""
_ALLOW, _REFUSE, _UNKNOWN, _KILL = 0x7FFF_0000, 0x0005_0001, 0x0005_0026, 0x8000_0000
_LOAD, _EQUAL, _ANY, _RETURN = 0x20, 0x15, 0x45, 0x06


def main() -> NoReturn:
    """Set up the restrictions, then execute the command in this process."""
    wanted = json.loads(sys.argv[1])
    libc = ctypes.CDLL(None, use_errno=True)
    if os.getuid() == 0:
        _become_nobody(libc)
    if wanted["alive"] is not None:
        _die_with_parent(libc, wanted["alive"])
    _limit(wanted["limits"])
    _check(libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "prctl")
    _filter(libc)
    os.chdir("/scratch")
    os.closerange(3, 256)
    command = wanted["command"]
    os.execve(command[0], command, wanted["environment"])


def _become_nobody(libc: ctypes.CDLL) -> None:
    """Become user nobody, in a new user namespace: nobody owns no files, and RLIMIT_NPROC does not apply to root."""
    os.setgroups([])
    os.setresgid(_NOBODY, _NOBODY, _NOBODY)
    os.setresuid(_NOBODY, _NOBODY, _NOBODY)
    _check(libc.prctl(_MAY_BE_WRITTEN_OF, 1, 0, 0, 0), "prctl")
    _check(libc.unshare(_NEW_USERS), "unshare")
    for file, text in (("setgroups", "deny"), ("uid_map", _ITSELF), ("gid_map", _ITSELF)):
        Path("/proc/self", file).write_text(text, encoding="ascii")


def _die_with_parent(libc: ctypes.CDLL, alive: int) -> None:
    """Ask for SIGKILL on the parent's death: changing user cleared that request, and the parent may have died since."""
    _check(libc.prctl(_PARENT_DEATH, signal.SIGKILL, 0, 0, 0), "prctl")
    if select.select([alive], [], [], 0)[0]:
        os._exit(1)


def _limit(limits: dict[str, Any]) -> None:
    for kind, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, limits["cpu_seconds"]),
        (resource.RLIMIT_AS, limits["memory_bytes"]),
        (resource.RLIMIT_NPROC, limits["processes"]),
        (resource.RLIMIT_FSIZE, limits["file_bytes"]),
        (resource.RLIMIT_NOFILE, limits["files"]),
        (resource.RLIMIT_MEMLOCK, 0),
    ):
        resource.setrlimit(kind, (most, most))


def _filter(libc: ctypes.CDLL) -> None:
    """Install a seccomp filter that refuses calls which no kernel text needs: a second line behind the namespaces."""
    if platform.machine() not in _FILTERED:
        raise OSError(f"no filter of calls for {platform.machine()}")
    architecture, clone, refused = _FILTERED[platform.machine()]
    lines = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, 0)]
    if platform.machine() == "x86_64":
        lines += [(0x35, 0, 1, 0x4000_0000), (_RETURN, 0, 0, _KILL)]
    for number in refused:
        lines += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _REFUSE)]
    # The C library then falls back to `clone`, whose flags a filter can inspect.
    lines += [(_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, _UNKNOWN)]
    lines += [(_EQUAL, 0, 3, clone), (_LOAD, 0, 0, 16), (_ANY, 0, 1, _NAMESPACES), (_RETURN, 0, 0, _REFUSE)]
    lines.append((_RETURN, 0, 0, _ALLOW))
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(lines), ctypes.addressof(program)))
    _check(libc.prctl(_SECCOMP, _BY_FILTER, ctypes.byref(header), 0, 0), "seccomp")


def _check(result: int, what: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    main()
