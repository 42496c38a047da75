"""Inside of an isolation: tries what must not be possible, and prints `contained`, or what was possible.

Run by its path with nothing but the standard library; its arguments are a file of the outside and a process of it.
"""

from __future__ import annotations

import ctypes
import os
import resource
import socket
import sys
from collections.abc import Callable
from pathlib import Path


def main() -> None:
    """Ends with status 1 where something was possible."""
    secret, outsider = sys.argv[1], int(sys.argv[2])
    tries: tuple[tuple[str, Callable[[], object]], ...] = (
        ("it reads a file of the outside", lambda: Path(secret).read_bytes()),
        ("it writes beside its scratch folder", lambda: Path("/usr/argus-probe").write_bytes(b"")),
        ("it writes into the root folder", lambda: Path("/argus-probe").write_bytes(b"")),
        ("it writes without a limit", lambda: _filled(Path("/scratch/large"))),
        ("it reaches a network", _connected),
        ("it sees processes of the outside", lambda: _seen(outsider)),
        ("it starts processes without a limit", _forked),
        ("it has memory without a limit", lambda: bytearray(resource.getrlimit(resource.RLIMIT_AS)[0])),
        ("it raises its own limits", lambda: resource.setrlimit(resource.RLIMIT_CPU, (1 << 20, 1 << 20))),
        ("it is root", _is_root),
        ("it makes namespaces of its own", _apart),
        ("it holds memory that no limit counts", lambda: os.close(os.memfd_create("probe"))),
    )
    for what, act in tries:
        if _possible(act):
            print(what)
            sys.exit(1)
    Path("/scratch/own").write_bytes(b"own")
    print("contained")


def _possible(act: Callable[[], object]) -> bool:
    try:
        act()
    except (OSError, MemoryError, ValueError):
        return False
    return True


def _filled(path: Path) -> None:
    try:
        with path.open("wb") as file:
            for _ in range(8):
                file.write(bytes(1 << 20))
    finally:
        path.unlink()


def _connected() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.connect(("192.0.2.1", 9))


def _seen(process: int) -> None:
    """All processes of a namespace of its own are few, and number 1 is among them."""
    found = [path.name for path in Path("/proc").iterdir() if path.name.isdigit()]
    if len(found) < 8 and "1" in found and (str(process) not in found or process < 8):
        raise ProcessLookupError


def _forked() -> None:
    """Twice as many as are allowed."""
    most = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    read, write = os.pipe()
    started: list[int] = []
    try:
        for _ in range(2 * most):
            child = os.fork()
            if child == 0:
                os.close(write)
                os.read(read, 1)
                os._exit(0)
            started.append(child)
    finally:
        os.close(write)
        for child in started:
            os.waitpid(child, 0)


def _apart() -> None:
    """New users and mounts would be new ways to everything that the kernel offers."""
    if ctypes.CDLL(None).unshare(0x1002_0000) != 0:
        raise PermissionError


def _is_root() -> None:
    if os.getuid() != 0:
        raise PermissionError


if __name__ == "__main__":
    main()
