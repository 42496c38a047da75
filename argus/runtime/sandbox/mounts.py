"""The files mounted in the sandbox, read-only, under their own names: Python, the packages it needs, Argus.

No part of a home folder, of the working folder or of /etc is visible, except folders that contain those packages and
the dynamic linker's cache.
"""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path

from attrs import frozen

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache")
_PACKAGES = ("attr", "attrs", "cattrs", "numpy", "ml_dtypes", "z3", "cvc5", "click", "rich", "platformdirs", "resvg_py")
_COMPILERS = ("ziglang", "cuda", "nvidia")
SCRATCH = "/scratch"
"""The only writable folder; it is in memory, and disappears with the process."""


@frozen
class Mounts:
    """paths: mounted under their own names. links: pairs of a symbolic link and its target. search: PYTHONPATH."""

    paths: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    search: tuple[str, ...]

    def environment(self) -> dict[str, str]:
        """All environment variables of a sandboxed process: none is inherited."""
        return {
            "PATH": "/usr/bin:/bin",
            "HOME": SCRATCH,
            "TMPDIR": SCRATCH,
            "LANG": "C.UTF-8",
            "PYTHONPATH": ":".join(self.search),
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
            # Each thread reserves address space, which is limited.
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            "MALLOC_ARENA_MAX": "2",
        }


@cache
def sandbox_mounts() -> Mounts:
    """The files that this interpreter and this Argus need."""
    argus = Path(__file__).parents[2]
    roots = tuple(dict.fromkeys(root for root in map(_root_of, (*_PACKAGES, *_COMPILERS)) if root))
    folders = [path for path in map(Path, _SYSTEM) if path.exists() and not path.is_symlink()]
    folders += [Path(sys.prefix), Path(sys.base_prefix), argus, *map(Path, roots)]
    links = tuple((name, str(Path(name).readlink())) for name in _SYSTEM if Path(name).is_symlink())
    return Mounts(_outermost(folders), links, (str(argus.parent), *roots))


def _root_of(package: str) -> str:
    """The folder on the module path that contains a package; empty if it is not installed."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return ""
    if spec is None:
        return ""
    places = list(spec.submodule_search_locations or ()) or ([spec.origin] if spec.origin else [])
    return str(Path(places[0]).parent) if places else ""


def _outermost(folders: list[Path]) -> tuple[str, ...]:
    kept: list[Path] = []
    for folder in sorted(set(folders), key=lambda path: len(path.parts)):
        if not any(folder.is_relative_to(other) for other in kept):
            kept.append(folder)
    return tuple(map(str, kept))
