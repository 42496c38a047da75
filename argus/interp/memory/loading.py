"""Global memory at the start of a launch: inputs, uninitialised outputs, tags, and integers that satisfy promises."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from argus.core.algebra import TRUE
from argus.core.index import Index, Read, Symbol
from argus.core.ir import Buffer, Copy, Equals, Kernel, Strided, Tag, WrittenOnce, walk, whole
from argus.core.walk import IntArray, evaluate, symbols, topological
from argus.interp.memory.cells import PLAIN, AnyArray, BoolArray, Cells, Written, blank
from argus.interp.state import Launch
from argus.interp.values.drawn_inputs import SMALL, drawn_floats, drawn_integers, drawn_to_be_rounded
from argus.interp.values.tensor_claims import array_of, elements, number, tag
from argus.interp.violation import OutOfBoundsReadError, UnsatisfiedPromiseError, not_built

Array = npt.NDArray[Any]
_SHOWN = 16
_ATTEMPTS, _ROUNDS = 16, 32
"""Draws of a tensor; draws of all tensors, where a promise reads several. After a quarter, elements are mostly equal:
lists of two tensors that fit each other are rare among independent numbers, and empty parts fit most others.
"""
_PREFERRED = 8.0
"""How far apart numbers are preferred, of what an element's own choice adds at most."""


def outputs(kernel: Kernel) -> tuple[Buffer, ...]:
    """The parameters that some copy writes."""
    targets = {stmt.target.buffer for stmt in walk(kernel.body) if isinstance(stmt, Copy)}
    return tuple(buffer for buffer in kernel.parameters if buffer in targets)


def inputs(kernel: Kernel) -> tuple[Buffer, ...]:
    """The parameters that the kernel reads, or does not write."""
    copies = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Copy)]
    read = {stmt.source.buffer for stmt in copies} | {s.target.buffer for s in copies if s.combine is not None}
    written = outputs(kernel)
    return tuple(buffer for buffer in kernel.parameters if buffer in read or buffer not in written)


def load(launch: Launch, arrays: Mapping[str, Array], seed: int | tuple[int, int]) -> None:
    """Allocate the tensors of a launch: inputs by name, random from the seed where absent."""
    random = np.random.default_rng(seed)
    filled = inputs(launch.prepared.kernel)
    if any(_others(buffer) for buffer in filled):
        arrays = {**drawn_together(launch, arrays, random), **arrays}
    for buffer in launch.prepared.kernel.parameters:
        launch.tensors[buffer] = cells = blank(
            extent(launch, buffer), buffer.dtype, values=launch.values, tags=launch.tags, exact=launch.exact
        )
        if buffer in filled:
            fill(launch, buffer, cells, arrays.get(buffer.name), random)
    begin(launch)


def begin(launch: Launch) -> None:
    """Assign the kernel's tags to the tensors of a launch, and start recording its writes."""
    claims: tuple[WrittenOnce | Equals, ...] = ()
    if launch.tags:
        claims = (*launch.prepared.write_claims, *(claim for _, claim in launch.prepared.formula_claims))
    launch.written = {
        buffer: Written.of(extent(launch, buffer))
        for buffer in (*launch.claimed, *(claim.view.buffer for claim in claims))
        if buffer in launch.tensors
    }
    if launch.compared:
        named = {name for _, claim in launch.prepared.formula_claims for name in claim.before}
        known = (buffer for buffer in launch.prepared.kernel.parameters if buffer.name in named)
        launch.initial.update({buffer.name: array_of(launch, buffer).copy() for buffer in known})
    tagged: set[Buffer] = set()
    for stmt in walk(launch.prepared.kernel.body):
        if isinstance(stmt, Tag) and stmt.view.buffer in launch.tensors:
            _tag(launch, stmt, more=stmt.view.buffer in tagged)
            tagged.add(stmt.view.buffer)


def _tag(launch: Launch, stmt: Tag, *, more: bool) -> None:
    nodes: list[Index] = [node for _, node in stmt.names] + list(stmt.view.at)
    if any(symbol not in launch.sizes for symbol in symbols(*nodes)):
        raise not_built("tags that depend on more than coordinates and sizes", stmt)
    tag(launch, stmt.view, stmt.names, more=more)


def extent(launch: Launch, buffer: Buffer) -> int:
    """The number of cells of a tensor."""
    assert isinstance(buffer.layout, Strided), buffer.name
    shape = [number(launch, size) for size in buffer.shape]
    strides = [number(launch, stride) for stride in buffer.layout.strides]
    if prod(shape) == 0:
        return 1
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


def fill(launch: Launch, buffer: Buffer, cells: Cells, given: Array | None, random: np.random.Generator) -> None:
    """Fill a tensor with the given contents, or random ones."""
    every = elements(launch, whole(buffer))
    if cells.marks is not None:
        cells.marks[every.cell] = PLAIN
    if cells.values is None and buffer.name not in launch.prepared.read:
        return
    contents = contents_of(launch, buffer, every.shape, given, random)
    if cells.values is not None:
        cells.values[every.cell] = contents.reshape(-1)
    if buffer.name in launch.prepared.read:
        launch.prepared.set_integers({**launch.prepared.integers, buffer.name: Integers(buffer, contents).guarded})


def drawn_together(launch: Launch, given: Mapping[str, Array], random: np.random.Generator) -> dict[str, Array]:
    """Random contents of all tensors that have promises and are not given, of which some may read other tensors.

    Raises UnsatisfiedPromiseError if none are found.
    """
    for turn in range(_ROUNDS):
        try:
            return _drawn_in_turn(launch, given, random, few=turn >= _ROUNDS // 4)
        except UnsatisfiedPromiseError as problem:
            if not _others(problem.buffer):
                raise  # others do not matter
    return _drawn_in_turn(launch, given, random, few=True)


def _drawn_in_turn(
    launch: Launch, given: Mapping[str, Array], random: np.random.Generator, *, few: bool
) -> dict[str, Array]:
    found: dict[str, Array] = {}
    for buffer in launch.prepared.kernel.parameters:
        if buffer.promise is not TRUE:
            shape = tuple(number(launch, size) for size in buffer.shape)
            made = contents_of(launch, buffer, shape, given.get(buffer.name), random, few=few)
            found[buffer.name] = made
            held = {**launch.prepared.integers, buffer.name: Integers(buffer, made).guarded}
            launch.prepared.set_integers(held)
    return found


def contents_of(
    launch: Launch,
    buffer: Buffer,
    shape: tuple[int, ...],
    given: Array | None,
    random: np.random.Generator,
    *,
    few: bool = False,
) -> AnyArray:
    """The given contents, or random ones. Raises UnsatisfiedPromiseError if none are found that satisfy the promise.

    few: whether promised integers are mostly equal, where the promise allows it.
    """
    if given is not None:
        return np.broadcast_to(np.asarray(given).astype(launch.storage(buffer.dtype), copy=False), shape)
    if buffer.dtype.family == "float":
        schedule = launch.adversary.schedule
        if launch.compared and schedule.rounds:
            return drawn_to_be_rounded(buffer.dtype, shape, random, schedule.draw)
        draw = schedule.draw if launch.exact else 0
        return drawn_floats(buffer.dtype, shape, random, draw).astype(launch.storage(buffer.dtype))
    drawn = drawn_integers(buffer.dtype, shape, random)
    return drawn if buffer.promise is TRUE else _promised(launch, buffer, drawn, random, few=few)


def _promised(launch: Launch, buffer: Buffer, drawn: AnyArray, random: np.random.Generator, *, few: bool) -> AnyArray:
    """Random integers that satisfy the promise, sorted if needed. Raises UnsatisfiedPromiseError if none are found."""
    for _ in range(1 if _others(buffer) else _ATTEMPTS):
        made = _candidate(launch, buffer, drawn, random, few=few)
        for each in (made, np.sort(made, axis=None).reshape(made.shape)):
            if satisfies_promise(buffer, each, launch.sizes, launch.prepared.integers).all():
                return each
    raise UnsatisfiedPromiseError(buffer)


def _candidate(launch: Launch, buffer: Buffer, drawn: AnyArray, random: np.random.Generator, *, few: bool) -> AnyArray:
    """For every element, a random small number or size that satisfies the promise when all elements have it.

    few: numbers are preferred to others in a random order.
    """
    made, choice = drawn.copy(), np.full(drawn.shape, -np.inf)
    for candidate in dict.fromkeys((*range(-1, SMALL), *launch.sizes.values())):
        kept = satisfies_promise(buffer, np.full_like(drawn, candidate), launch.sizes, launch.prepared.integers)
        preferred = _PREFERRED * random.random() if few else 0.0
        weight = np.where(kept, preferred + random.random(drawn.shape), -np.inf)
        made[weight > choice] = candidate
        choice = np.maximum(choice, weight)
    return made


def satisfies_promise(
    buffer: Buffer, contents: AnyArray, sizes: Mapping[Symbol, int], integers: Mapping[str, IntArray]
) -> BoolArray:
    """Where the elements of a tensor satisfy its promise; nowhere, if that reads another tensor without elements."""
    if any(not plain(integers[name]).size for name in _others(buffer)):
        return np.zeros(contents.shape, np.bool_)
    coordinates = tuple(cast(IntArray, axis) for axis in np.indices(contents.shape, dtype=np.int64))
    clipped = {name: cast(IntArray, _Clipped(plain(each))) for name, each in integers.items()}
    own = cast(IntArray, _Clipped(contents.astype(np.int64)))
    held = evaluate(buffer.promise, sizes, coordinates, {**clipped, buffer.name: own})
    return np.broadcast_to(np.asarray(held, np.bool_), contents.shape)


def _others(buffer: Buffer) -> set[str]:
    """The other tensors that the promise about a tensor reads."""
    return {node.array for node in topological([buffer.promise]) if isinstance(node, Read)} - {buffer.name}


class _Clipped:
    """Elements with indices clamped to the bounds: a promise may refer to neighbours that do not exist at the ends."""

    def __init__(self, held: IntArray) -> None:
        self._held = held

    def __getitem__(self, at: tuple[int | IntArray, ...]) -> IntArray:
        kept = (np.clip(index, 0, max(0, size - 1)) for index, size in zip(at, self._held.shape, strict=True))
        return self._held[tuple(kept)]


def plain(held: IntArray) -> IntArray:
    """The elements themselves, of what may be bounds-checked."""
    return held.elements if isinstance(held, Integers) else held


class Integers:
    """The elements of an integer tensor, bounds-checked. Indexing raises OutOfBoundsReadError outside."""

    def __init__(self, buffer: Buffer, contents: AnyArray) -> None:
        self._buffer, self._held = buffer, contents.astype(np.int64)

    @property
    def guarded(self) -> IntArray:
        """Itself as an array; `evaluate` only indexes it."""
        return cast(IntArray, self)

    @property
    def elements(self) -> IntArray:
        """Without the checks."""
        return self._held

    def __str__(self) -> str:
        shown = self._held.reshape(-1)[:_SHOWN].tolist() if self._held.ndim > 1 else self._held[:_SHOWN].tolist()
        return f"[{', '.join(map(str, shown))}{', ...' if self._held.size > _SHOWN else ''}]"

    def __getitem__(self, at: tuple[int | IntArray, ...]) -> int | IntArray:
        shape = self._held.shape
        for index, size in zip(at, shape, strict=True):
            outside = np.atleast_1d(np.less(index, 0) | np.greater_equal(index, size))
            if outside.any():
                place = np.unravel_index(int(outside.argmax()), outside.shape)
                element = (int(np.broadcast_to(np.atleast_1d(each), outside.shape)[place]) for each in at)
                raise OutOfBoundsReadError(self._buffer, tuple(element), shape)
        found = self._held[at]
        return int(found) if np.ndim(found) == 0 else found
