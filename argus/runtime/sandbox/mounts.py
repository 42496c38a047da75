"""The files that a contained process sees, read-only, under their own names: Python, the packages it needs, Argus.

Nothing of a home folder, of the working folder or of /etc is among them but what those packages lie in.
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
"""The one folder that can be written; it is in memory, and gone with the process."""


@frozen
class Seen:
    """paths: seen under their own names. links: pairs of a path and what it points to. search: for modules."""

    paths: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    search: tuple[str, ...]

    def environment(self) -> dict[str, str]:
        """All variables of a contained process: none is inherited."""
        return {
            "PATH": "/usr/bin:/bin",
            "HOME": SCRATCH,
            "TMPDIR": SCRATCH,
            "LANG": "C.UTF-8",
            "PYTHONPATH": ":".join(self.search),
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
            # Each thread reserves addresses, which are limited.
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            "MALLOC_ARENA_MAX": "2",
        }


@cache
def seen() -> Seen:
    """What this interpreter and this Argus need."""
    argus = Path(__file__).parents[2]
    roots = tuple(dict.fromkeys(root for root in map(_root_of, (*_PACKAGES, *_COMPILERS)) if root))
    folders = [path for path in map(Path, _SYSTEM) if path.exists() and not path.is_symlink()]
    folders += [Path(sys.prefix), Path(sys.base_prefix), argus, *map(Path, roots)]
    links = tuple((name, str(Path(name).readlink())) for name in _SYSTEM if Path(name).is_symlink())
    return Seen(_outermost(folders), links, (str(argus.parent), *roots))


def _root_of(package: str) -> str:
    """The folder of modules that a package lies in; empty if it is not installed."""
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
