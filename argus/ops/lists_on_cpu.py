"""What the kernels written as text compute, for tensors of the CPU: orders of rows, lists of tiles, chosen experts.

As there, nothing proves them: the kernels that use the result check it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def expert_order(ids: Array, experts: int, choices: int) -> tuple[Array, Array, Array, Array]:
    """Offsets of experts, the assignment and the token of each row, and the row of each assignment."""
    own = np.clip(ids.reshape(-1), 0, experts - 1)
    order = np.argsort(own, kind="stable")
    inverse = np.empty_like(order)
    inverse[order] = np.arange(order.size)
    return _offsets(np.bincount(own, minlength=experts)), order, order // max(1, choices), inverse


def received_order(counts: Array, rows: int) -> tuple[Array, Array, Array]:
    """Offsets of experts, the received row of each place, and the place of each received row."""
    ranks, experts = int(counts.shape[0]), int(counts.shape[1])
    held: Array = np.repeat(np.arange(ranks * experts) % experts, np.maximum(counts.reshape(-1), 0))[:rows]
    order = np.concatenate([np.argsort(held, kind="stable"), np.arange(held.size, rows)])
    inverse = np.empty_like(order)
    inverse[order] = np.arange(rows)
    return _offsets(np.bincount(held, minlength=experts)), order, inverse


def tiles(starts: Array, count: int, height: int) -> tuple[Array, Array]:
    """The first row of each of `count` tiles, with the end of the last one, and the expert of each."""
    held = np.maximum(-(-np.diff(starts.astype(np.int64)) // height), 0)
    owners = np.repeat(np.arange(held.size), held)[:count]
    inside = np.arange(owners.size) - (np.cumsum(held) - held)[owners]
    firsts = np.full(count + 1, starts[-1])
    firsts[: owners.size] = starts[owners] + inside * height
    return firsts, np.concatenate([owners, np.full(count - owners.size, held.size - 1)])


def chosen(scores: Array, bias: Array | None, k: int, kept: Array | None = None) -> Array:
    """The experts of the largest scores of each token, in descending order, of equal ones the first.

    With a bias it is added to the sigmoids of scores. What is no number counts as the largest. kept: if given, only
    experts of which it is positive are chosen, as long as there are any.
    """
    held = scores.astype(np.float32)
    if bias is not None:
        with np.errstate(over="ignore"):
            held = np.float32(1) / (np.float32(1) + np.exp(-held)) + bias
    held = np.where(np.isnan(held), np.float32(np.inf), held)
    if kept is None:
        return np.argsort(-held, axis=1, kind="stable")[:, :k]
    return np.lexsort((-held, kept <= 0), axis=1)[:, :k]


def _offsets(counts: Array) -> Array:
    return np.concatenate([[0], np.cumsum(counts)])
