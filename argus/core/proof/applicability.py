"""Decides which invariants apply to a kernel, and gives the reason for each that does not."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import frozen

from argus.core.check import ends_rows, expressions, has_masks
from argus.core.index import Read
from argus.core.ir import (
    Arrive,
    Assert,
    Await,
    Buffer,
    Commit,
    Copy,
    Distinct,
    Edit,
    Equal,
    Equals,
    Fence,
    Fold,
    Get,
    Kernel,
    Let,
    Map,
    Mma,
    One,
    Op,
    Order,
    Peek,
    Products,
    Relation,
    Roles,
    Staged,
    Stmt,
    Sync,
    Wait,
    WrittenOnce,
    walk,
)
from argus.core.ir.element_walk import nodes
from argus.core.proof.limits.budgets import needs_register_reuse
from argus.core.proof.sync.war_fences import has_unfenced_refills
from argus.core.proof.values.held.deciding import over_the_reals
from argus.core.walk import mentions


@frozen
class Features:
    """The constructs that a kernel uses, as far as they decide which invariants apply."""

    mma: bool
    shared: bool
    swizzled: bool
    barriers: bool
    outputs: bool
    relations: bool
    queues: bool
    banks: bool
    products: bool
    roles: bool
    events: bool
    proxies: bool
    folds: bool
    lets: bool
    splits: bool
    scales: bool
    copies: bool
    counters: bool
    clusters: bool
    groups: bool
    bulk: bool
    descriptors: bool
    matrices: bool
    budgets: bool
    maps: bool
    masks: bool


_NARROW = 8
"""Number types of at most this many bits are used with scales."""


def kernel_features(kernel: Kernel) -> Features:
    """The constructs that the kernel's statements use."""
    stmts = list(walk(kernel.body))
    buffers = {view.buffer for s in stmts if isinstance(s, Copy) for view in (s.source, s.target)}
    claims = [s.claim for s in stmts if isinstance(s, Assert)]

    def has(*kinds: type[Stmt]) -> bool:
        return any(isinstance(s, kinds) for s in stmts)

    return Features(
        mma=has(Mma),
        shared=any(b.space == "shared" for b in buffers),
        swizzled=any(isinstance(b.layout, Staged) and b.layout.swizzle is not None for b in buffers),
        barriers=has(Sync),
        outputs=any(isinstance(c, WrittenOnce) for c in claims) or _stores_to_global(stmts),
        relations=any(isinstance(c, Equal | Distinct | Relation | Order | Products | Equals) for c in claims),
        queues=any(isinstance(s, Copy) and s.atom.completion.queue is not None for s in stmts) or has(Wait),
        banks=any(b.banks is not None for b in buffers),
        products=any(b.products is not None for b in buffers),
        roles=has(Roles, One),
        events=has(Arrive, Await),
        proxies=has(Fence, Commit) or any(isinstance(s, Copy | Mma) and s.atom.proxy == "async" for s in stmts),
        folds=has(Fold) or any(isinstance(s, Map) and _has_exponentials(s) for s in stmts),
        lets=any(isinstance(s, Let) and not _reads_counter(s) for s in stmts) or any(map(_reads_integers, stmts)),
        splits=any(isinstance(s, Copy) and s.combine is not None for s in stmts),
        scales=any(isinstance(s, Mma) and min(s.a.buffer.dtype.bits, s.b.buffer.dtype.bits) <= _NARROW for s in stmts)
        and any(isinstance(s, Map) and _multiplies_operands(s) for s in stmts),
        copies=has(Copy),
        counters="lds" in kernel.target.queues,
        clusters=any(extent != 1 for extent in kernel.cluster),
        groups=any(isinstance(s, Mma) and s.atom.completion.queue == "wgmma" for s in stmts),
        bulk=any(isinstance(s, Copy) and s.atom.completion.queue == "bulk" for s in stmts),
        descriptors=any(isinstance(s, Mma | Copy) and _uses_descriptor(s) for s in stmts),
        matrices=any(isinstance(s, Copy) and _copies_matrices(s) for s in stmts),
        budgets=kernel.roles is not None and any(role.registers is not None for role in kernel.roles.roles),
        maps=has(Edit) or any(isinstance(s, Copy) and s.through is not None for s in stmts),
        masks=has_masks(kernel) or ends_rows(kernel),
    )


def _reads_counter(stmt: Let) -> bool:
    """Whether a `Let` reads a counter of its role rather than data."""
    return isinstance(stmt.value, Peek) and stmt.value.view.buffer.space == "counter"


def _reads_integers(stmt: Stmt) -> bool:
    return any(mentions(root, (Read,)) for root in expressions(stmt))


def _multiplies_operands(stmt: Map) -> bool:
    """Whether a map multiplies or divides elements of two operands, as scaling an accumulator does."""
    products = [
        node.args[:2] for node in nodes(stmt.elem) if isinstance(node, Op) and node.name in ("mul", "div", "fma")
    ]
    return any(all(any(isinstance(inner, Get) for inner in nodes(arg)) for arg in factors) for factors in products)


def _stores_to_global(stmts: list[Stmt]) -> bool:
    return any(isinstance(s, Copy) and s.target.buffer.space == "global" for s in stmts)


def _uses_descriptor(stmt: Mma | Copy) -> bool:
    """Whether an instruction takes a descriptor that names a shared-memory layout."""
    if isinstance(stmt, Copy):
        return stmt.atom.box is not None and stmt.atom.box.axes > 1
    return any(operand.canonical for operand in stmt.atom.operands.values())


def _copies_matrices(stmt: Copy) -> bool:
    return any(operand.space == "shared" and operand.tv is not None for operand in stmt.atom.operands.values())


def _has_exponentials(stmt: Map) -> bool:
    """Whether a map computes exponentials; the verifier treats these as part of a softmax."""
    return any(isinstance(node, Op) and node.name in ("exp", "exp2") for node in nodes(stmt.elem))


CHECKED_INVARIANTS = frozenset(
    (
        *("I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9", "I10", "I11", "I12", "I13", "I14", "I15", "I16", "I17"),
        *(
            "I18",
            "I19",
            "I20",
            "I21",
            "I22",
            "I23",
            "I24",
            "I25",
            "I26",
            "I27",
            "I28",
            "I29",
            "I30",
            "I31",
            "I32",
            "I33",
        ),
        *("I34", "I35", "I36", "I37", "I38", "I39", "I40"),
    )
)
"""Invariants with a check in the verifier."""

_Rule = tuple[Callable[[Features], bool], str]

_RULES: Mapping[str, _Rule] = {
    "I1": (lambda f: f.mma, "no matrix instruction"),
    "I2": (lambda f: f.mma, "no matrix instruction"),
    "I3": (lambda f: f.mma, "no accumulator"),
    "I4": (lambda f: f.outputs, "nothing is stored to global memory"),
    "I5": (lambda f: f.shared, "no shared memory"),
    "I6": (lambda f: f.events, "no barrier is waited on by parity"),
    "I7": (lambda f: f.events, "no barrier counts bytes"),
    "I8": (lambda f: f.events, "no barrier counts arrivals, except the block barrier"),
    "I9": (lambda f: f.roles, "one role: all waves run the same statements"),
    "I10": (lambda f: f.groups and f.shared, "no matrix instruction reads shared memory"),
    "I11": (lambda f: f.groups, "matrix instructions complete in order"),
    "I12": (lambda f: f.proxies, "one memory proxy"),
    "I13": (lambda f: f.bulk, "no bulk stores"),
    "I14": (lambda f: f.events, "no barrier objects to initialise"),
    "I15": (lambda f: f.clusters, "no cluster"),
    "I16": (lambda f: f.clusters, "no multicast"),
    "I17": (lambda f: f.descriptors, "no matrix descriptors"),
    "I18": (lambda f: f.swizzled, "no swizzled shared memory"),
    "I19": (lambda f: f.copies, "no copies"),
    "I20": (lambda f: f.matrices, "no store instruction that fixes a register layout; I4 checks each stored element"),
    "I21": (lambda f: f.budgets, "no register reallocation between roles"),
    "I22": (lambda _: True, ""),
    "I23": (lambda f: f.folds, "no softmax"),
    "I24": (lambda f: f.folds and f.mma, "no second product that lags"),
    "I25": (lambda f: f.masks, "no mask"),
    "I26": (lambda f: f.folds and f.mma, "no heads"),
    "I27": (lambda f: f.lets, "no integer from memory chooses a tile"),
    "I28": (lambda f: f.copies, "no addresses"),
    "I29": (lambda f: f.maps, "no tensor descriptors are edited"),
    "I30": (lambda f: f.shared and f.counters, "the target has no LDS counter: it reads shared memory in order"),
    "I31": (lambda f: f.queues, "no asynchronous operation"),
    "I32": (lambda f: f.barriers, "no barrier"),
    "I33": (lambda f: f.banks, "no bank-conflict degree is declared"),
    "I34": (lambda f: f.splits, "no store accumulates into elements that other blocks also store"),
    "I35": (lambda f: f.scales, "no accumulator of narrow operands is multiplied by a scale"),
    "I36": (lambda f: f.shared, "no shared memory is reused"),
    "I37": (lambda f: f.copies, "no copies"),
    "I38": (lambda _: True, ""),
    "I39": (lambda f: f.relations, "no relation is asserted"),
    "I40": (lambda f: f.products, "no number of products is declared"),
}


_FINITE = "loaded values are finite: 0 times a loaded value is 0"
_REFILL = "TMA refills a stage only after the reads of the agents that released it (reads-before-refill)"


def machine_assumptions(kernel: Kernel) -> tuple[str, ...]:
    """The assumptions about the hardware that the proof of this kernel uses and that its manuals do not state."""
    stmts = list(walk(kernel.body))
    groups = any(isinstance(s, Mma) and s.atom.completion.queue == "wgmma" for s in stmts)
    shared = ("register tiles with disjoint lifetimes share registers; the build reports spills",)
    return (
        *(("a warp's `wgmma` wait covers its whole warpgroup (T5)",) if groups else ()),
        *(shared if needs_register_reuse(kernel) else ()),
        *((_FINITE,) if has_masks(kernel) and any(isinstance(s, Mma) for s in stmts) else ()),
        *((_REFILL,) if has_unfenced_refills(kernel) else ()),
    )


_IN_REALS = "numbers that decide a test, a floor or an integer are computed over the reals, as if not rounded"
_SHOWN = 3


def real_assumptions(kernel: Kernel, later: frozenset[Buffer] = frozenset()) -> tuple[str, ...]:
    """The assumption that rounding decides nothing, with the lines that it is about; none if it can decide nothing.

    later: the kernel's tensors by whose numbers later launches of a program decide.
    """
    lines = tuple(dict.fromkeys(stmt.span.place for stmt in over_the_reals(kernel, later)))
    more = f" and {len(lines) - _SHOWN} more lines" if len(lines) > _SHOWN else ""
    return (f"{_IN_REALS} (reals): {', '.join(lines[:_SHOWN])}{more}",) if lines else ()


def not_applicable(kernel: Kernel) -> dict[str, str]:
    """Map each invariant that does not apply to the kernel to the reason."""
    found = kernel_features(kernel)
    return {invariant: reason for invariant, (applies, reason) in _RULES.items() if not applies(found)}
