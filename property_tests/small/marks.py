"""What a kernel uses, read from its statements: the marks by which random programs are counted."""

from __future__ import annotations

from math import prod

from argus.core.ir import (
    Alloc,
    Await,
    Cast,
    Copy,
    Fold,
    For,
    Kernel,
    Map,
    Mma,
    Op,
    Roles,
    Staged,
    Stmt,
    Where,
    walk,
)
from argus.core.ir.element_walk import nodes

_COPIES = {
    "tma": "tma",
    "bulk": "tma",
    "cp_async": "cp.async",
    "buffer_load_lds": "direct load to LDS",
    "buffer": "buffer",
    "stmatrix": "stmatrix",
    "ldmatrix": "ldmatrix",
    "shfl": "shift",
    "ds_bpermute": "shift",
}


def uses(kernel: Kernel) -> tuple[str, ...]:
    """The marks of a kernel in alphabetical order."""
    cluster = ["cluster"] if prod(kernel.cluster) > 1 else []
    return tuple(sorted({*cluster, *(mark for stmt in walk(kernel.body) for mark in _marks(stmt))}))


def _marks(stmt: Stmt) -> list[str]:
    match stmt:
        case Mma(atom=atom, a=a) if atom.name.startswith("wgmma"):
            return ["mma", "wgmma", *(["wgmma with A in registers"] if a.buffer.space == "register" else [])]
        case Mma(atom=atom):
            return ["mma", "mfma" if "mfma" in atom.name else "mma.sync"]
        case Copy():
            return _marks_of_copy(stmt)
        case Fold(keep=keep):
            return ["fold" if keep == "total" else "scan"]
        case Map(target=target, elem=elem):
            integer = target.buffer.dtype.family == "int" and any(isinstance(node, Op) for node in nodes(elem))
            kinds = {Cast: "cast", Where: "choice"}
            found = [mark for node in nodes(elem) for kind, mark in kinds.items() if isinstance(node, kind)]
            return ["elements", *(["integer arithmetic"] if integer else []), *found]
        case Await():
            return ["mbarrier"]
        case Alloc(buffer=buffer, count=count):
            ring = count is not None and bool(buffer.shape)
            swizzled = isinstance(buffer.layout, Staged) and buffer.layout.swizzle is not None
            return [*(["ring"] if ring else []), *(["swizzle"] if swizzled else [])]
        case For():
            return ["loop"]
        case Roles():
            return ["roles"]
        case _:
            return []


def _marks_of_copy(stmt: Copy) -> list[str]:
    spaces = {stmt.source.buffer.space, stmt.target.buffer.space}
    found = [mark for name, mark in _COPIES.items() if stmt.atom.name.startswith(name)][:1]
    if stmt.atom.box is not None and found == ["tma"]:
        found.append(f"tma of {stmt.atom.box.axes} axes")
    if "shared" in spaces:
        found.append("shared memory")
    if stmt.peers is not None:
        found.append("multicast")
    if stmt.target.peer is not None:
        found.append("store to a peer")
    if stmt.combine is not None:
        found.append("atomic")
    return found
