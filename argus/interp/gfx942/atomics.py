"""Atomic operations on memory: what each leaves there, of what was there and of its data.

[MI300 ISA, chapter "Instructions", DS and FLAT.] Lanes take their turns in the order of workgroups and lanes.
"""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import numpy.typing as npt
from attrs import frozen

from argus.interp.gfx942.state import Array

U32, U64, I32, I64, F32, F64 = np.uint32, np.uint64, np.int32, np.int64, np.float32, np.float64
Join = Callable[[Array, Array, Array], Array]
"""Of what was there, the data, and the value to compare with (of those that compare): what is left there."""


@frozen
class Atomic:
    """kind: the type of an element. ufunc: of operations that fold, the function. compares: whether there are two data
    operands.
    """

    kind: type[np.generic]
    join: Join
    ufunc: np.ufunc | None = None
    compares: bool = False

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return np.dtype(self.kind).itemsize


def folding(kind: type[np.generic], ufunc: np.ufunc) -> Atomic:
    def run(old: Array, data: Array, _: Array) -> Array:
        found: Array = ufunc(old, data)
        return found

    return Atomic(kind, run, ufunc)


def plain(kind: type[np.generic], run: Callable[[Array, Array], Array]) -> Atomic:
    return Atomic(kind, lambda old, data, _: run(old, data))


def _increased(old: Array, data: Array) -> Array:
    """One more, 0 after `data`."""
    more: Array = old + old.dtype.type(1)
    return np.where(old >= data, old.dtype.type(0), more)


def _decreased(old: Array, data: Array) -> Array:
    """One less, `data` after 0 and from beyond it."""
    return np.where((old == 0) | (old > data), data, old - old.dtype.type(1))


def _packed(kind: npt.DTypeLike) -> Callable[[Array, Array], Array]:
    """Sums of two 16-bit halves, each rounded once."""

    def run(old: Array, data: Array) -> Array:
        left, right = (np.ascontiguousarray(each).view(kind).astype(F32) for each in (old, data))
        return (left + right).astype(kind).view(U32)

    return run


def _smaller(old: Array, data: Array) -> Array:
    return np.where(data < old, data, old)


def _larger(old: Array, data: Array) -> Array:
    return np.where(data > old, data, old)


def _of_integers(unsigned: type[np.generic], signed: type[np.generic]) -> dict[str, Atomic]:
    return {
        "swap": plain(unsigned, lambda _old, data: data),
        "cmpswap": Atomic(unsigned, lambda old, data, wanted: np.where(old == wanted, data, old), compares=True),
        "add": folding(unsigned, np.add),
        "sub": folding(unsigned, np.subtract),
        "rsub": plain(unsigned, lambda old, data: data - old),
        "smin": folding(signed, np.minimum),
        "umin": folding(unsigned, np.minimum),
        "smax": folding(signed, np.maximum),
        "umax": folding(unsigned, np.maximum),
        "and": folding(unsigned, np.bitwise_and),
        "or": folding(unsigned, np.bitwise_or),
        "xor": folding(unsigned, np.bitwise_xor),
        "inc": plain(unsigned, _increased),
        "dec": plain(unsigned, _decreased),
    }


SHORT, LONG = _of_integers(U32, I32), _of_integers(U64, I64)
"""Of 32-bit and of 64-bit integers."""
ADD_F32, ADD_F64 = folding(F32, np.add), folding(F64, np.add)
LEAST_F32, MOST_F32 = plain(F32, _smaller), plain(F32, _larger)
LEAST_F64, MOST_F64 = plain(F64, _smaller), plain(F64, _larger)
ADD_HALVES, ADD_BRAINS = plain(U32, _packed(np.float16)), plain(U32, _packed(ml_dtypes.bfloat16))


def update(
    atomic: Atomic, held: Array, places: npt.NDArray[np.int64], data: Array, wanted: Array, *, returns: bool
) -> Array:
    """Operate on elements of `held` at distinct or equal places, in order; returns what was there before each.

    Without `returns`, the result of places that occur several times is not that.
    """
    before = held[places]
    if len(np.unique(places)) == len(places):
        held[places] = atomic.join(before, data, wanted)
        return before
    if atomic.ufunc is not None and not returns:
        atomic.ufunc.at(held, places, data)
        return before
    for number, place in enumerate(places):
        one = slice(number, number + 1)
        before[one] = held[place : place + 1]
        held[place : place + 1] = atomic.join(before[one], data[one], wanted[one])
    return before
