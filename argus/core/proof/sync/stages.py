"""Stages of shared tensors across iterations: which accesses may have a common cell."""

from __future__ import annotations

from attrs import evolve

from argus.core import algebra
from argus.core.index import And, Bin, Cmp, Cond, Const
from argus.core.ir import For
from argus.core.proof.dataflow.access import Access, Accesses, overlap
from argus.core.proof.sync.progress import Key, Progress, SharedAccess, State, key_of


def anchored(accesses: Accesses, entry: State, loop: For) -> State:
    """The records before a loop, where a constant stage c is (k - start + c) % stages.

    That is c in the first iteration, and stays c if k is replaced by k - step with each further one, as records are.
    So a stage that was filled before the loop is distinguished from those that each iteration uses.
    """
    records: dict[Key, tuple[SharedAccess, Progress]] = {}
    for touched, progress in entry.records.values():
        moved = _on_loop(accesses, touched, loop)
        key = key_of(moved)
        known = records.get(key)
        records[key] = (moved, progress if known is None else known[1].join(progress))
    return evolve(entry, records=records)


def _on_loop(accesses: Accesses, touched: SharedAccess, loop: For) -> SharedAccess:
    fixed = touched.fixed or touched.access
    view = fixed.view
    stage, stages = view.at[0], view.buffer.shape[0]
    if len(view.shape) == len(view.buffer.shape) or not isinstance(stage, Const) or not isinstance(stages, Const):
        return touched
    if not 0 <= stage.value < stages.value:
        return touched
    gone = algebra.sub(algebra.sym(loop.symbol), loop.start)
    moved = evolve(view, at=(algebra.mod(algebra.add(gone, stage), stages), *view.at[1:]))
    return evolve(touched, access=accesses.with_view(fixed, moved), fixed=fixed, age=0)


def may_conflict(later: SharedAccess, earlier: SharedAccess, *, agents: bool = False) -> bool:
    """Whether two accesses may have a common cell, from two threads if both are ordinary.

    agents: threads of several agents execute the statements, so that those of one number are not one thread.
    """
    ordinary = not agents and later.kind in ("read", "write") and earlier.kind in ("read", "write")
    return all(_may_overlap(one, other, ordinary=ordinary) for one in later.forms for other in earlier.forms)


def _may_overlap(later: Access, earlier: Access, *, ordinary: bool) -> bool:
    common = overlap(later, earlier, {})
    if common is None:
        return True
    if common.slots is algebra.FALSE or _different_slots(common.slots):
        return False
    if not common.cells.shared:
        return False
    return not ordinary or common.cells.of_two_threads


def _different_slots(slots: Cond) -> bool:
    """Whether two stage indices differ in every iteration: their arguments differ by a constant, modulo the stages."""
    parts = slots.parts if isinstance(slots, And) else (slots,)
    return any(
        isinstance(part, Cmp)
        and part.op == "=="
        and isinstance(part.left, Bin)
        and isinstance(part.right, Bin)
        and _differ_modulo(part.left, part.right)
        for part in parts
    )


def _differ_modulo(one: Bin, other: Bin) -> bool:
    if (one.op, other.op) != ("%", "%") or one.right is not other.right or not isinstance(one.right, Const):
        return False
    distance = algebra.sub(one.left, other.left)
    return isinstance(distance, Const) and distance.value % one.right.value != 0
