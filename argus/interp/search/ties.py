"""Sizes that an assumption ties to others by an equation, such as K == 64 * B."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import cast

import numpy as np

from argus.core import algebra
from argus.core.algebra.integers import linear_terms
from argus.core.index import And, Cmp, Cond, Index, Sym, Symbol
from argus.core.walk import evaluate, symbols


def tied(assumption: Cond, sizes: Iterable[Mapping[str, int]]) -> Iterator[Mapping[str, int]]:
    """Each of the sizes, and those that satisfy the equations in its place: a tied size is computed from the others."""
    ties = dict(_ties(assumption))
    for size in sizes:
        yield size
        if ties:
            with suppress(ZeroDivisionError):
                yield _with_ties(ties, size)


def _with_ties(ties: Mapping[Symbol, Index], size: Mapping[str, int]) -> Mapping[str, int]:
    found = dict(size)
    for _ in ties:  # one may be tied to another
        for symbol, index in ties.items():
            env = {each: found[each.name] for each in symbols(index)}
            found[symbol.name] = int(cast(int, np.asarray(evaluate(index, env))))
    return found


def _ties(assumption: Cond) -> Iterator[tuple[Symbol, Index]]:
    """(size, what it equals) of each equation that can be solved for a size."""
    known = set[Symbol]()
    for cond in assumption.parts if isinstance(assumption, And) else (assumption,):
        if not isinstance(cond, Cmp) or cond.op != "==":
            continue
        difference = algebra.sub(cond.left, cond.right)
        for atom, factor in linear_terms(difference)[0]:
            if not isinstance(atom, Sym) or abs(factor) != 1 or atom.symbol in known:
                continue
            rest = algebra.sub(difference, algebra.mul(atom, factor))
            if symbols(rest) and atom.symbol not in symbols(rest):
                known.add(atom.symbol)
                yield atom.symbol, algebra.mul(rest, -factor)
                break
