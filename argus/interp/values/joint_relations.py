"""Evaluates a relation of tag components for all their combinations at once, to select those to check singly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from argus.core.index import Cond, Symbol
from argus.core.walk import evaluate
from argus.interp.memory.cells import BoolArray, IntArray
from argus.interp.memory.views import Env
from argus.interp.values.sets import is_single


def needs_check(
    cond: Cond, names: Sequence[Symbol], kinds: IntArray, env: Env, integers: Mapping[str, IntArray]
) -> BoolArray:
    """Which combinations to check singly: those with sets or missing components, and those that violate the condition.

    kinds: one row per name, one column per combination. If the evaluation fails, as in a division by zero, all are
    checked singly.
    """
    single = np.asarray(is_single(kinds).all(axis=0))
    values = dict(zip(names, kinds[:, single], strict=True))
    try:
        held = evaluate(cond, {**env, **values}, (), integers)
    except (ArithmeticError, LookupError):
        return np.ones_like(single)
    found = ~single
    found[single] = ~np.broadcast_to(np.asarray(held, np.bool_), int(np.count_nonzero(single)))
    return found
