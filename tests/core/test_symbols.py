"""Symbols with equal fields are one object, in whatever way they are made."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from copy import copy, deepcopy

from attrs import evolve

from argus.core.index import Symbol


def test_equal_symbols_are_one_object() -> None:
    one = Symbol("x", "loop", 0)

    assert Symbol("x", "loop", 0) is one
    assert Symbol("x", "loop", low=0, high=None) is one
    assert all(made is one for made in (copy(one), deepcopy(one), evolve(one)))
    assert pickle.loads(pickle.dumps(one)) is one  # noqa: S301 reason: our own bytes


def test_symbols_that_differ_in_a_field_differ() -> None:
    every = [Symbol("x", "loop", 0), Symbol("y", "loop", 0), Symbol("x", "size", 0), Symbol("x", "loop", 1)]
    every += [Symbol("x", "loop"), Symbol("x", "loop", 0, 7), evolve(every[0], high=8)]

    assert len(set(every)) == len(every)
    assert [(each.name, each.kind, each.low, each.high) for each in every[-2:]] == [
        ("x", "loop", 0, 7),
        ("x", "loop", 0, 8),
    ]


def test_threads_find_whole_symbols() -> None:
    def made(number: int) -> Symbol:
        return Symbol(f"thread {number // 4}", "fresh", number // 4)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(made, range(400)))

    assert all(each.low == number // 4 for number, each in enumerate(found))
    assert len({id(each) for each in found}) == 100
