"""Checks statements of a deserialised kernel against the rules that the language enforces while tracing.

Most of them exclude ambiguous meanings: a copy moves elements between tiles of equal shape, its registers belong to
the thread that executes it, and its instruction is the one that the language would choose; a launcher can check every
assumption.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

from argus.core import algebra
from argus.core.atoms.lanes import SHUFFLES
from argus.core.check.register_operands import threads_hold
from argus.core.diagnostic import ArgusError
from argus.core.dsl.copies.choose_atom import choose_atom
from argus.core.index import Bin, Cond, Const, Coord, Index, Node, Read
from argus.core.ir import (
    SCHEDULED,
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
    Equals,
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
from argus.core.values.expr import Expr, Fn
from argus.core.values.operations import OPERATIONS
from argus.core.values.rewriting import elements, free_symbols, integers, nodes
from argus.core.walk import mentions, symbols, topological

_LARGEST_CLUSTER = 8


def operation_violations(kernel: Kernel, things: Iterable[object]) -> Iterator[str]:
    """Reasons why tracing cannot have produced the statements of this kernel; `things`: all its objects."""
    yield from _grid(kernel)
    top_level = _top_level_statements(kernel)
    for stmt in walk(kernel.body):
        why = _violation(kernel, stmt)
        if why:
            yield f"{why}, line {stmt.span}"
        if isinstance(stmt, Alloc) and stmt.buffer.space == "counter" and id(stmt) not in top_level:
            yield f"allocates the counter `{stmt.buffer.name}` inside a loop or a branch"
    for thing in things:
        match thing:
            case Bin(op="<<" | ">>", right=right) if (right.range[0] is None) or right.range[0] < 0:
                yield "shifts by a possibly negative amount"
            case View(peer=peer) if peer is not None and not _within(peer, 0, kernel.peers - 1):
                yield "addresses a block rank that may be outside its cluster"
            case TagOf(back=back) if back < 0:
                yield "refers to tags of a later iteration"
            case _:
                pass


def _grid(kernel: Kernel) -> Iterator[str]:
    clustered = kernel.peers > 1
    if not 1 <= len(kernel.grid) <= 3 or any(size < 1 for size in kernel.cluster):
        yield "has an invalid grid or cluster: one to three axes, positive extents"
    if kernel.peers > _LARGEST_CLUSTER or len(kernel.cluster) > len(kernel.grid):
        yield f"has a cluster of more than {_LARGEST_CLUSTER} blocks, or of more axes than its grid"
    if clustered and "wgmma" not in kernel.target.queues:
        yield f"has clusters, which {kernel.target} does not support"
    if not clustered and kernel.cluster != (1,):
        yield "has a cluster of one block that is not written as (1,)"


def _top_level_statements(kernel: Kernel) -> set[int]:
    """The statements of the prologue and of the roles' bodies, outside loops and branches; by identity."""
    roles = () if kernel.roles is None else kernel.roles.roles
    return {id(stmt) for body in (kernel.prologue, *(role.body for role in roles)) for stmt in body}


def _within(node: Index, low: int, high: int) -> bool:
    return node.range[0] is not None and node.range[1] is not None and low <= node.range[0] and node.range[1] <= high


def _violation(kernel: Kernel, stmt: Stmt) -> str:
    """Why tracing cannot have produced a statement; empty if it can."""
    match stmt:
        case Copy():
            return _copy(kernel, stmt)
        case Assume(cond=cond):
            known = all(symbol.kind == "size" for symbol in symbols(cond)) and not mentions(cond, (Coord, Read))
            return "" if known else "has an assumption that no launcher can check"
        case Let(value=Peek(view=view)):
            return "" if view.buffer.space == "counter" and view.shape == () else "reads a counter that is not one"
        case Advance(counter=counter):
            return "" if counter.space == "counter" else "advances a counter that is not one"
        case Map(target=target, elem=elem):
            return _coordinates(indices(elem), len(target.shape))
        case Tag(view=view, names=names):
            named = all(not name.startswith("_") for name, _ in names)
            return _coordinates([value for _, value in names], len(view.shape)) if named else "has a tag without a name"
        case Assert(claim=claim):
            return _claim(claim)
        case Sync():
            return _sync(kernel, stmt)
        case Commit(queue=queue):
            return "" if queue in kernel.target.queues else f"uses a queue that {kernel.target} does not have"
        case Wait(queue=queue, pending=pending, of=of):
            fine = queue in kernel.target.queues and pending >= 0 and (of == "all" or queue == "bulk")
            return "" if fine else f"has a wait that {kernel.target} does not have"
        case Arrive(count=count):
            return "" if count >= 1 else "has an arrival with a count below 1"
        case Edit(map=buffer):
            return "" if buffer.space == "map" else "edits a tensor map that is not one"
        case Policy():
            return _policy(kernel, stmt)
        case _:
            return ""


# -- copies ------------------------------------------------------------------------------------------------------------


def _copy(kernel: Kernel, copy: Copy) -> str:
    if copy.source.shape != copy.target.shape or copy.source.shape != tuple(map(algebra.const, copy.by.tile)):
        return "copies between tiles of different shapes"
    # A shuffle reads registers of another lane.
    shuffled = copy.atom in SHUFFLES.values()
    for view in (copy.target,) if shuffled else (copy.source, copy.target):
        if view.buffer.space == "register" and not _held(view, copy.by):
            return f"copies registers of `{view.buffer.name}` that another thread holds"
    if copy.edge is not None and copy.atom.unit == 1 and (copy.edge != 0 or copy.atom.edge != "box_zero"):
        return f"makes `{copy.atom}` read {copy.edge} outside a tensor"
    why = _completion(kernel, copy)
    if why or shuffled:
        return why
    try:
        chosen = choose_atom(kernel.target, copy.source, copy.target, copy.by, copy.atom, copy.combine)
    except ArgusError as problem:
        return f"has a copy that no instruction implements ({problem.diagnostic.message[:200]})"
    return "" if chosen is copy.atom else "has a copy whose instruction is not the one that the language chooses"


def _held(view: View, by: TV) -> bool:
    return threads_hold(view, tuple(algebra.coord(axis) for axis in range(len(view.shape))), by)


def _completion(kernel: Kernel, copy: Copy) -> str:
    """Why tracing cannot have given a copy this signal, these receivers or this tensor map; empty if it can."""
    if copy.signal is not None and copy.signal.peer is not None:
        return "has a copy that completes on a barrier of another block"
    if copy.peers is not None:
        landing = copy.atom.completion.signal and kernel.peers > 1 and _names_blocks(copy.peers, kernel.peers)
        return "" if landing else "has a multicast to blocks that may be outside its cluster"
    if copy.through is not None:
        boxed = copy.atom.box is not None and copy.atom.box.axes >= 2
        mapped = copy.through.space == "map" and copy.target.buffer.space == "global"
        return "" if boxed and mapped else "has a copy with a tensor map that its instruction cannot use"
    return ""


def _names_blocks(mask: Index, peers: int) -> bool:
    """Whether a multicast mask has bits only for ranks of the cluster."""
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


# -- claims, barriers, advice ------------------------------------------------------------------------------------------


def _coordinates(nodes: Iterable[Node], axes: int) -> str:
    """Expressions about an element of `axes` axes may use its coordinates only."""
    used = {node.axis for node in topological(tuple(nodes)) if isinstance(node, Coord)}
    return "" if all(0 <= axis < axes for axis in used) else "uses a coordinate that its elements do not have"


def _claim(claim: Claim) -> str:
    match claim:
        case Distinct(components=components, over=over):
            fine = bool(components) and all(symbol.kind in ("loop", "block") for symbol in over)
            return "" if fine else "has a claim of distinctness without components, or over symbols that do not iterate"
        case Relation(names=names, cond=cond):
            return _coordinates([cond], min((len(of.view.shape) for _, of in names), default=0))
        case Covers(of=of, low=low, high=high, where=where):
            return _coordinates([low, high, where], len(of.view.shape))
        case WrittenOnce(view=view, record=record, where=where):
            return _coordinates([*(value for _, value in record), where], len(view.shape))
        case Products(view=view, products=products):
            return _coordinates([node for pair in products for side in pair for node in side], len(view.shape))
        case Equals(view=view, formula=formula, where=where, before=before):
            if list(before) != sorted({*before} & {each.tensor for each in elements(formula)}):
                return "has a claim that names what tensors held before, of tensors that it does not read"
            return formula_violation(formula, len(view.shape), where)
        case Equal() | Order():
            return ""


def formula_violation(formula: Expr, rank: int, where: Cond = algebra.TRUE) -> str:
    """Why tracing cannot have produced a formula of an element with `rank` coordinates; empty if it can.

    It is over sizes, and computed with the operations that have a meaning; so is the condition of the claim.
    """
    if any(symbol.kind != "size" for symbol in free_symbols(formula) | symbols(where)):
        return "has a claim about values that depends on more than sizes"
    operations = [each for each in nodes(formula) if isinstance(each, Fn)]
    known = all(each.name in OPERATIONS and OPERATIONS[each.name].arity == len(each.args) for each in operations)
    if not known:
        return "has a formula with an operation that formulas do not have"
    return _coordinates((*integers(formula), where), rank)


def _sync(kernel: Kernel, stmt: Sync) -> str:
    if stmt.barrier in ("cta", "cluster"):
        return "" if stmt.threads is None or stmt.origin is not None else "has a block barrier for part of the threads"
    if stmt.threads is None or not 0 < stmt.threads <= kernel.threads or stmt.threads % kernel.target.unit:
        return "has a named barrier whose thread count is not a number of whole warps of the block"
    return ""


def _policy(kernel: Kernel, stmt: Policy) -> str:
    match stmt.name, stmt.args:
        case "priority", (level,):
            fine = 0 <= level <= 3
        case "sched_barrier", (0,):
            fine = True
        case "sched_group_barrier", (kind, count):
            fine = kernel.target.name == "gfx942" and kind in SCHEDULED.values() and count >= 1
        case (("no_pdl" | "early_reads" | "own_checks"), ()):
            fine = kernel.target.name == "sm_90a" and stmt in kernel.prologue
        case "skip_one", ():
            fine = True
        case "free_order", ():
            fine = kernel.target.name == "gfx942" and stmt in kernel.prologue
        case "registers", (count,):
            fine = count % 8 == 0 and 24 <= count <= 256
        case "remap_xcd", (group,):
            alone = sum(isinstance(each, Policy) and each.name == "remap_xcd" for each in walk(kernel.body)) == 1
            plain = kernel.target.name == "gfx942" and len(kernel.grid) in (2, 3) and prod(kernel.cluster) == 1
            fine = group >= 1 and alone and plain and stmt in kernel.prologue
        case _:
            fine = False
    return "" if fine else f"has invalid arguments or placement of advice `{stmt.name}`"
