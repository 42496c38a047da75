"""A relation of components judged for all of their combinations at once, as far as that can be done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from argus.core.index import Cond, Symbol
from argus.core.walk import evaluate
from argus.interp.memory.cells import BoolArray, IntArray
from argus.interp.memory.views import Env
from argus.interp.values.sets import is_single


def suspected(
    cond: Cond, names: Sequence[Symbol], kinds: IntArray, env: Env, integers: Mapping[str, IntArray]
) -> BoolArray:
    """Which combinations want a look of their own: sets, gaps, and where the condition is false.

    kinds: the components by name, a combination a column. Where some have no answer, as after a division by zero, each
    has its turn.
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
