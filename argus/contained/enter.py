"""The last step before what is contained begins: limits that it cannot raise, then it takes this process' place.

Run by its path with nothing but the standard library, inside of the namespaces: `python -I -S enter.py SPECIFICATION`,
a JSON object of `limits`, `environment` and `command`.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import sys
from typing import Any

_NO_NEW_PRIVILEGES = 38
_NOBODY = 65_534


def main() -> None:
    """Does not return: the command runs in this process."""
    wanted = json.loads(sys.argv[1])
    _become_nobody()
    _limit(wanted["limits"])
    if ctypes.CDLL(None, use_errno=True).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    os.chdir("/scratch")
    os.closerange(3, 256)
    command = wanted["command"]
    os.execve(command[0], command, wanted["environment"])


def _become_nobody() -> None:
    """Nobody has limits of processes that root has not, and owns no file."""
    if os.getuid() != 0:
        return
    os.setgroups([])
    os.setresgid(_NOBODY, _NOBODY, _NOBODY)
    os.setresuid(_NOBODY, _NOBODY, _NOBODY)


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


if __name__ == "__main__":
    main()
