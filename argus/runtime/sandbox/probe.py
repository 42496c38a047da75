"""Probes an isolation from inside: tries what must be impossible; prints `contained`, or the first thing that
succeeded.

Run by its path with the standard library alone; its arguments are a file and the id of a process, both outside.
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
    """Exits with status 1 if any attempt succeeded."""
    secret, outsider = sys.argv[1], int(sys.argv[2])
    tries: tuple[tuple[str, Callable[[], object]], ...] = (
        ("it reads a file of the outside", lambda: Path(secret).read_bytes()),
        ("it writes beside its scratch folder", lambda: Path("/usr/argus-probe").write_bytes(b"")),
        ("it writes into the root folder", lambda: Path("/argus-probe").write_bytes(b"")),
        ("it writes without a limit", lambda: _fill(Path("/scratch/large"))),
        ("it reaches a network", _connect),
        ("it sees processes of the outside", lambda: _see(outsider)),
        ("it starts processes without a limit", _fork),
        ("it has memory without a limit", lambda: bytearray(resource.getrlimit(resource.RLIMIT_AS)[0])),
        ("it raises its own limits", lambda: resource.setrlimit(resource.RLIMIT_CPU, (1 << 20, 1 << 20))),
        ("it is root", _is_root),
        ("it makes namespaces of its own", _unshare),
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


def _fill(path: Path) -> None:
    try:
        with path.open("wb") as file:
            for _ in range(8):
                file.write(bytes(1 << 20))
    finally:
        path.unlink()


def _connect() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.connect(("192.0.2.1", 9))


def _see(process: int) -> None:
    """Raises unless outside processes are visible; a PID namespace of our own has few processes, one with number 1."""
    found = [path.name for path in Path("/proc").iterdir() if path.name.isdigit()]
    if len(found) < 8 and "1" in found and (str(process) not in found or process < 8):
        raise ProcessLookupError


def _fork() -> None:
    """Fork twice as many processes as the limit allows."""
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


def _unshare() -> None:
    """New user and mount namespaces, which would expose more of the operating system's kernel."""
    if ctypes.CDLL(None).unshare(0x1002_0000) != 0:
        raise PermissionError


def _is_root() -> None:
    if os.getuid() != 0:
        raise PermissionError


if __name__ == "__main__":
    main()
