"""Numbers that stand for elements of tensors, drawn by a hash: equal in every process."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from attrs import frozen

from argus.core.walk import IntArray, Value

_KEPT = 1 << 16
"""Numbers in the cache: samples at several sizes draw the same ones."""

_KEPT_ARRAYS = 64
"""Arrays of them in the cache: both sides of an equality draw the same ones, at each of several sizes."""


@frozen
class Drawn:
    """Elements drawn from {low/per .. high/per}."""

    seed: int
    low: int
    high: int
    per: int

    def __call__(self, tensor: str, at: tuple[int, ...]) -> Fraction:
        """One element."""
        return Fraction(self.low + _hashed(f"{self.seed}/{tensor}", at, 8) % (self.high - self.low + 1), self.per)

    def floats(self, tensor: str, at: Sequence[IntArray]) -> npt.NDArray[np.float64]:
        """The elements at places that are arrays of one shape; one element, if there are no coordinates."""
        name, many = f"{self.seed}/{tensor}", np.uint64(self.high - self.low + 1)
        places = tuple(np.asarray(each, np.int64).tobytes() for each in np.broadcast_arrays(*at))
        return (self.low + (_hashes(name, places) % many).astype(np.float64)) / self.per


@lru_cache(maxsize=_KEPT)
def _hashed(name: str, at: tuple[int, ...], size: int) -> int:
    return int.from_bytes(hashlib.blake2b(f"{name}/{at}".encode(), digest_size=size).digest(), "little")


@lru_cache(maxsize=_KEPT_ARRAYS)
def _hashes(name: str, places: tuple[bytes, ...]) -> npt.NDArray[np.uint64]:
    """Those of places whose coordinates are the 64-bit integers of these arrays; of one, if there are none."""
    at = _places([np.frombuffer(each, np.int64) for each in places])
    return np.array([_hashed(name, one, 8) for one in at], np.uint64)


@lru_cache(maxsize=_KEPT_ARRAYS)
def _few(name: str, places: tuple[bytes, ...]) -> IntArray:
    """The elements of an integer tensor at such places: 0 to 3."""
    at = _places([np.frombuffer(each, np.int64) for each in places])
    return np.array([_hashed(name, one, 1) % 4 for one in at], np.int64)


def _places(at: Sequence[Value]) -> list[tuple[int, ...]]:
    return list(zip(*(each.ravel().tolist() for each in np.broadcast_arrays(*at)), strict=True)) if at else [()]


def seeded(seed: int, *, low: int = -8, high: int = 8, per: int = 4) -> Drawn:
    """Elements drawn from {low/per .. high/per}."""
    return Drawn(seed, low, high, per)


class _Array:
    """The elements of an integer tensor: 0 to 3."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, at: tuple[Value, ...]) -> Value:
        if all(isinstance(each, int) for each in at):
            return _hashed(self.name, cast("tuple[int, ...]", at), 1) % 4
        return _few(self.name, tuple(np.asarray(each, np.int64).tobytes() for each in np.broadcast_arrays(*at)))


class _Arrays(dict[str, Any]):
    def __missing__(self, name: str) -> _Array:
        return _Array(name)

    def __bool__(self) -> bool:  # `walk.evaluate` takes an empty mapping for none
        return True


INTEGERS: Mapping[str, Any] = _Arrays()
"""The elements of every integer tensor."""
