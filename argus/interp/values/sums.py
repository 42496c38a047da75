"""Sums of products under arithmetic, and which components they hold: counted when a claim asks, once for equal rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from attrs import frozen

from argus.interp.memory.cells import MISSING, BoolArray, IntArray, Records
from argus.interp.state import Contribution, Standing, Sum


def scaled(one: Sum | None) -> Sum | None:
    """A sum times a number; None stands for what is no known sum."""
    return None if one is None else Sum(one.log, one.standing, open=one.open, scaled=True)


def united(one: Sum | None, other: Sum | None) -> Sum | None:
    """The sum of two sums; None where its contributions, or their weights, are not plain."""
    if one is None or other is None or not (one.open and other.open):
        return None
    if one.log and other.log and (one.scaled or other.scaled or _same(one.log, other.log)):
        return None
    standing = dict(one.standing)
    for name, theirs in other.standing.items():
        ours = standing.get(name, "unsure")
        if "unsure" not in (ours, theirs) and ours != theirs:
            return None
        standing[name] = theirs if ours == "unsure" else ours
    if one.standing and other.standing and _over(one.standing, standing) != _over(other.standing, standing):
        return None
    return Sum([*one.log, *other.log], standing, scaled=one.scaled or other.scaled)


def _same(one: Sequence[Contribution], other: Sequence[Contribution]) -> bool:
    """Whether a sum is added to itself, which scales it."""
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def _over(names: Iterable[str], standing: Mapping[str, Standing]) -> set[str]:
    return {name for name in names if standing[name] == "contracted"}


def alike(log: Sequence[Contribution]) -> bool:
    """Whether there are products, and all have the same accumulators in the same places."""
    same = all(e.tiling is log[0].tiling or np.array_equal(e.cells, log[0].cells) for e in log)
    return bool(log) and same


@frozen(eq=False)
class Group:
    """Accumulators (a mask over (m, n)) that summed the same components and are to hold [low, high)."""

    members: BoolArray
    components: IntArray
    low: int
    high: int


def groups(
    records: Records, name: str, log: Sequence[Contribution], judged: BoolArray, low: IntArray, high: IntArray
) -> Iterator[Group]:
    """The accumulators of one wave, by what they summed; an element carries the tag of its `a`."""
    column = np.concatenate([records.get(name, entry.a) for entry in log], axis=1)
    valid_a = np.concatenate([entry.a >= 0 for entry in log], axis=1)
    valid_b = np.concatenate([entry.b >= 0 for entry in log], axis=1)
    column = np.where(valid_a, column, MISSING)
    rows, row = _classes(column.astype(np.int64), valid_a.astype(np.int64))
    others, other = _classes(valid_b.astype(np.int64))
    bounds, bound = _bounds(low, high)
    code = (row[:, None] * len(others) + other) * len(bounds) + bound
    for key in np.unique(code[judged]):
        pair, which = divmod(int(key), len(bounds))
        i, j = rows[pair // len(others)], others[pair % len(others)]
        components = column[i][valid_a[i] & valid_b[j]]
        yield Group(judged & (code == key), components, *bounds[which])


def _bounds(low: IntArray, high: IntArray) -> tuple[list[tuple[int, int]], IntArray]:
    """The distinct pairs (low, high), and which one each element has."""
    if low.size == 0 or (low.min() == low.max() and high.min() == high.max()):
        pair = (int(low.flat[0]), int(high.flat[0])) if low.size else (0, 0)
        return [pair], np.zeros(low.shape, np.int64)
    pairs, which = np.unique(np.stack([low.reshape(-1), high.reshape(-1)]), axis=1, return_inverse=True)
    return [(int(a), int(b)) for a, b in pairs.T], which.reshape(low.shape).astype(np.int64)


def _classes(*arrays: IntArray) -> tuple[list[int], IntArray]:
    """A representative of each class of equal rows, and the class of each row."""
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
    """How a multiset differs from [low, high): the smallest number that is wrong, and how; None if it is right."""
    if (components == MISSING).any():
        return f"products without `{name}` are in it"
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
