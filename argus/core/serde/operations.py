"""Statements of a kernel that came as data: what the language sees to where they are written.

Most of it keeps a reading from meaning two things: a copy moves elements of one type between tiles of one shape, each
thread's own registers among them, by an instruction that moves just these; an assumption is one that a launcher can
check.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

from argus.core import algebra
from argus.core.atoms.lanes import SHUFFLES
from argus.core.check.holding import threads_hold
from argus.core.diagnostic import ArgusError
from argus.core.dsl.copies.choose_atom import choose
from argus.core.index import Bin, Const, Coord, Index, Node, Read
from argus.core.ir import (
    Advance,
    Alloc,
    Arrive,
    Assert,
    Assume,
    Claim,
    Commit,
    Copy,
    Covers,
    Distinct,
    Edit,
    Equal,
    Kernel,
    Let,
    Map,
    Order,
    Peek,
    Policy,
    Products,
    Relation,
    Stmt,
    Sync,
    Tag,
    TagOf,
    View,
    Wait,
    WrittenOnce,
    walk,
)
from argus.core.ir.element_walk import indices
from argus.core.layout import TV
from argus.core.walk import mentions, symbols, topological

_LARGEST_CLUSTER = 8


def refused_operations(kernel: Kernel, things: Iterable[object]) -> Iterator[str]:
    """Why tracing could not have given these statements."""
    yield from _grid(kernel)
    counters = _where_counters_are_made(kernel)
    for stmt in walk(kernel.body):
        why = _refused(kernel, stmt)
        if why:
            yield f"{why}, line {stmt.span}"
        if isinstance(stmt, Alloc) and stmt.buffer.space == "counter" and id(stmt) not in counters:
            yield f"makes the counter `{stmt.buffer.name}` anew in a loop or a branch"
    for thing in things:
        match thing:
            case Bin(op="<<" | ">>", right=right) if (right.range[0] is None) or right.range[0] < 0:
                yield "shifts by a distance that may be negative"
            case View(peer=peer) if peer is not None and not _within(peer, 0, kernel.peers - 1):
                yield "names a block that may be none of its cluster"
            case TagOf(back=back) if back < 0:
                yield "speaks of an iteration to come"
            case _:
                pass


def _grid(kernel: Kernel) -> Iterator[str]:
    clustered = kernel.peers > 1
    if not 1 <= len(kernel.grid) <= 3 or any(size < 1 for size in kernel.cluster):
        yield "has a grid, or a cluster, of other axes than there are"
    if kernel.peers > _LARGEST_CLUSTER or len(kernel.cluster) > len(kernel.grid):
        yield "has a cluster that no device runs"
    if clustered and "wgmma" not in kernel.target.queues:
        yield f"has clusters, which {kernel.target} has not"
    if not clustered and kernel.cluster != (1,):
        yield "has a cluster of one block that is written otherwise"


def _where_counters_are_made(kernel: Kernel) -> set[int]:
    """The statements at the level of an agent's body."""
    roles = () if kernel.roles is None else kernel.roles.roles
    return {id(stmt) for body in (kernel.prologue, *(role.body for role in roles)) for stmt in body}


def _within(node: Index, low: int, high: int) -> bool:
    return node.range[0] is not None and node.range[1] is not None and low <= node.range[0] and node.range[1] <= high


def _refused(kernel: Kernel, stmt: Stmt) -> str:
    match stmt:
        case Copy():
            return _copy(kernel, stmt)
        case Assume(cond=cond):
            known = all(symbol.kind == "size" for symbol in symbols(cond)) and not mentions(cond, (Coord, Read))
            return "" if known else "assumes what no launcher can check"
        case Let(value=Peek(view=view)):
            return "" if view.buffer.space == "counter" and view.shape == () else "reads what is no counter"
        case Advance(counter=counter):
            return "" if counter.space == "counter" else "counts in what is no counter"
        case Map(target=target, elem=elem):
            return _coordinates(indices(elem), len(target.shape))
        case Tag(view=view, names=names):
            named = all(not name.startswith("_") for name, _ in names)
            return _coordinates([value for _, value in names], len(view.shape)) if named else "has a tag of no name"
        case Assert(claim=claim):
            return _claim(claim)
        case Sync():
            return _meeting(kernel, stmt)
        case Commit(queue=queue):
            return "" if queue in kernel.target.queues else f"has a queue that {kernel.target} has not"
        case Wait(queue=queue, pending=pending, of=of):
            fine = queue in kernel.target.queues and pending >= 0 and (of == "all" or queue == "bulk")
            return "" if fine else f"waits in a way that {kernel.target} has not"
        case Arrive(count=count):
            return "" if count >= 1 else "arrives less than once"
        case Edit(map=buffer):
            return "" if buffer.space == "map" else "edits what is no tensor map"
        case Policy():
            return _policy(kernel, stmt)
        case _:
            return ""


# -- copies ------------------------------------------------------------------------------------------------------------


def _copy(kernel: Kernel, copy: Copy) -> str:
    if copy.source.shape != copy.target.shape or copy.source.shape != tuple(map(algebra.const, copy.by.tile)):
        return "copies between tiles of other shapes"
    # Between the lanes of a warp, what is read lies in another lane.
    shuffled = copy.atom in SHUFFLES.values()
    for view in (copy.target,) if shuffled else (copy.source, copy.target):
        if view.buffer.space == "register" and not _held(view, copy.by):
            return f"copies registers of `{view.buffer.name}` that other threads hold"
    if copy.edge is not None and copy.atom.unit == 1 and (copy.edge != 0 or copy.atom.edge != "box_zero"):
        return f"has `{copy.atom}` read {copy.edge} outside of a tensor"
    why = _completion(kernel, copy)
    if why or shuffled:
        return why
    try:
        chosen = choose(kernel.target, copy.source, copy.target, copy.by, copy.atom, copy.combine)
    except ArgusError as problem:
        return f"has a copy that no instruction makes ({problem.diagnostic.message[:200]})"
    return "" if chosen is copy.atom else "has a copy by another instruction than it names"


def _held(view: View, by: TV) -> bool:
    return threads_hold(view, tuple(algebra.coord(axis) for axis in range(len(view.shape))), by)


def _completion(kernel: Kernel, copy: Copy) -> str:
    """Where it lands, and what tells so."""
    if copy.signal is not None and copy.signal.peer is not None:
        return "completes on a barrier of another block"
    if copy.peers is not None:
        landing = copy.atom.completion.signal and kernel.peers > 1 and _names_blocks(copy.peers, kernel.peers)
        return "" if landing else "has a copy land in blocks that may be none of its cluster"
    if copy.through is not None:
        boxed = copy.atom.box is not None and copy.atom.box.axes >= 2
        mapped = copy.through.space == "map" and copy.target.buffer.space == "global"
        return "" if boxed and mapped else "has a copy by a tensor map that does not serve it"
    return ""


def _names_blocks(mask: Index, peers: int) -> bool:
    """Whether a mask is made of the bits of ranks that blocks of the cluster have."""
    pending = [mask]
    while pending:
        match pending.pop():
            case Const(value=value) if 0 < value < 1 << peers:
                pass
            case Bin(op="<<", left=Const(value=1), right=rank) if _within(rank, 0, peers - 1):
                pass
            case Bin(op="|", left=left, right=right):
                pending += [left, right]
            case _:
                return False
    return True


# -- claims, meetings, advice ------------------------------------------------------------------------------------------


def _coordinates(nodes: Iterable[Node], axes: int) -> str:
    """Coordinates are those of the elements that are spoken of."""
    used = {node.axis for node in topological(tuple(nodes)) if isinstance(node, Coord)}
    return "" if all(0 <= axis < axes for axis in used) else "speaks of a coordinate that its elements have not"


def _claim(claim: Claim) -> str:
    match claim:
        case Distinct(components=components, over=over):
            fine = bool(components) and all(symbol.kind in ("loop", "block") for symbol in over)
            return "" if fine else "claims that nothing is distinct, or over what does not iterate"
        case Relation(names=names, cond=cond):
            return _coordinates([cond], min((len(of.view.shape) for _, of in names), default=0))
        case Covers(of=of, low=low, high=high, where=where):
            return _coordinates([low, high, where], len(of.view.shape))
        case WrittenOnce(view=view, record=record, where=where):
            return _coordinates([*(value for _, value in record), where], len(view.shape))
        case Products(view=view, products=products):
            return _coordinates([node for pair in products for side in pair for node in side], len(view.shape))
        case Equal() | Order():
            return ""


def _meeting(kernel: Kernel, stmt: Sync) -> str:
    if stmt.barrier in ("cta", "cluster"):
        return "" if stmt.threads is None or stmt.origin is not None else "has a part of the block meet as a whole"
    if stmt.threads is None or not 0 < stmt.threads <= kernel.threads or stmt.threads % kernel.target.unit:
        return "has a meeting of other threads than whole warps of the block"
    return ""


def _policy(kernel: Kernel, stmt: Policy) -> str:
    match stmt.name, stmt.args:
        case "priority", (level,):
            fine = 0 <= level <= 3
        case "sched_barrier", (0,):
            fine = True
        case "no_pdl", ():
            fine = kernel.target.name == "sm_90a" and stmt in kernel.prologue
        case "registers", (count,):
            fine = count % 8 == 0 and 24 <= count <= 256
        case "remap_xcd", (group,):
            alone = sum(isinstance(each, Policy) and each.name == "remap_xcd" for each in walk(kernel.body)) == 1
            plain = kernel.target.name == "gfx942" and len(kernel.grid) == 2 and prod(kernel.cluster) == 1
            fine = group >= 1 and alone and plain and stmt in kernel.prologue
        case _:
            fine = False
    return "" if fine else f"has advice `{stmt.name}` that means something else"
