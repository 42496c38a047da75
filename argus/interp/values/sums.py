"""Sums of products: arithmetic on sums, and the multisets of components that they contain, evaluated on demand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from attrs import frozen

from argus.interp.memory.cells import MISSING, BoolArray, IntArray, Records
from argus.interp.memory.columns import distinct_columns
from argus.interp.state import Contribution, NameStatus, Sum
from argus.interp.values.sets import is_single


def scale_sum(one: Sum | None) -> Sum | None:
    """A sum multiplied by a number; None for an unknown sum."""
    return None if one is None else Sum(one.log, one.name_status, open=one.open, scaled=True)


def add_sums(one: Sum | None, other: Sum | None) -> Sum | None:
    """The sum of two sums; None if its products, or their weights, are unknown."""
    if one is None or other is None or not (one.open and other.open):
        return None
    if one.log and other.log and (one.scaled or other.scaled or _same(one.log, other.log)):
        return None
    status = dict(one.name_status)
    for name, theirs in other.name_status.items():
        ours = status.get(name, "unsure")
        if "unsure" not in (ours, theirs) and ours != theirs:
            return None
        status[name] = theirs if ours == "unsure" else ours
    if one.name_status and other.name_status and _over(one.name_status, status) != _over(other.name_status, status):
        return None
    return Sum([*one.log, *other.log], status, scaled=one.scaled or other.scaled)


def _same(one: Sequence[Contribution], other: Sequence[Contribution]) -> bool:
    """Whether both are the same sum; adding it to itself scales it."""
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def _over(names: Iterable[str], status: Mapping[str, NameStatus]) -> set[str]:
    return {name for name in names if status[name] == "contracted"}


def same_accumulators(log: Sequence[Contribution]) -> bool:
    """Whether there are products, and all go to the same accumulator cells."""
    same = all(e.tiling is log[0].tiling or np.array_equal(e.cells, log[0].cells) for e in log)
    return bool(log) and same


@frozen(eq=False)
class Group:
    """Accumulators (a mask over (m, n)) that summed the same components and are claimed to cover [low, high)."""

    members: BoolArray
    components: IntArray
    low: int
    high: int


def groups(
    records: Records, name: str, log: Sequence[Contribution], checked: BoolArray, low: IntArray, high: IntArray
) -> Iterator[Group]:
    """The accumulators of one wave, grouped by the components that they summed; products have the tag of `a`.

    Without those that summed products of sets.
    """
    column = np.concatenate([records.get(name, entry.a) for entry in log], axis=1)
    valid_a = np.concatenate([entry.a >= 0 for entry in log], axis=1)
    valid_b = np.concatenate([entry.b >= 0 for entry in log], axis=1)
    column = np.where(valid_a, column, MISSING)
    rows, row = _classes(column.astype(np.int64), valid_a.astype(np.int64))
    others, other = _classes(valid_b.astype(np.int64))
    bounds, bound = _bounds(low, high)
    code = (row[:, None] * len(others) + other) * len(bounds) + bound
    for key in np.unique(code[checked]):
        pair, which = divmod(int(key), len(bounds))
        i, j = rows[pair // len(others)], others[pair % len(others)]
        components = column[i][valid_a[i] & valid_b[j]]
        if not is_single(components[components != MISSING]).all():
            continue
        yield Group(checked & (code == key), components, *bounds[which])


def _bounds(low: IntArray, high: IntArray) -> tuple[list[tuple[int, int]], IntArray]:
    """The distinct pairs (low, high), and the index of each element's pair."""
    if low.size == 0 or (low.min() == low.max() and high.min() == high.max()):
        pair = (int(low.flat[0]), int(high.flat[0])) if low.size else (0, 0)
        return [pair], np.zeros(low.shape, np.int64)
    pairs, _, which = distinct_columns(np.stack([low.reshape(-1), high.reshape(-1)]))
    return [(int(a), int(b)) for a, b in pairs.T], which.reshape(low.shape).astype(np.int64)


def _classes(*arrays: IntArray) -> tuple[list[int], IntArray]:
    """A representative of each equivalence class of equal rows, and the class of each row."""
    if all(bool((array == array[0]).all()) for array in arrays):
        return [0], np.zeros(len(arrays[0]), np.int64)
    known: dict[bytes, int] = {}
    representatives: list[int] = []
    classes = np.zeros(len(arrays[0]), np.int64)
    for row in range(len(arrays[0])):
        key = b"".join(array[row].tobytes() for array in arrays)
        if key not in known:
            known[key] = len(representatives)
            representatives.append(row)
        classes[row] = known[key]
    return representatives, classes


def deviation(name: str, components: IntArray, low: int, high: int) -> str | None:
    """The difference of a multiset from [low, high), in words, for the smallest wrong number; None if equal."""
    if (components == MISSING).any():
        return f"it contains products without `{name}`"
    found, counts = np.unique(components, return_counts=True)
    outside = found[(found < low) | (found >= high)]
    missing = np.setdiff1d(np.arange(low, high, dtype=np.int64), found)
    faults: list[tuple[int, str]] = []
    if missing.size:
        faults.append((int(missing[0]), f"{int(missing[0])} is missing"))
    if (counts > 1).any():
        twice = int(found[counts > 1][0])
        times = int(counts[counts > 1][0])
        faults.append((twice, f"{twice} is counted {'twice' if times == 2 else f'{times} times'}"))
    if outside.size:
        faults.append((int(outside[0]), f"{int(outside[0])} is outside the set"))
    return f"{name} = {min(faults)[1]}" if faults else None
