"""Run a kernel: concrete sizes, concrete inputs, one schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen

from argus.core.index import Index
from argus.core.ir import (
    Assert,
    Buffer,
    Compare,
    Copy,
    Elem,
    Kernel,
    Map,
    Stmt,
    Strided,
    Tag,
    Test,
    WrittenOnce,
    walk,
    whole,
)
from argus.core.walk import symbols
from argus.interp.blocks import run_agents
from argus.interp.finals import array_of, elements, number, tag, written_once
from argus.interp.maps import parts_first
from argus.interp.memory import PLAIN, AnyArray, Cells, Written, blank
from argus.interp.prepared import Prepared
from argus.interp.schedule import Adversary, Schedule
from argus.interp.state import Launch
from argus.interp.step import run_block
from argus.interp.violation import Reporter, Violation, not_built

Array = npt.NDArray[Any]


@frozen
class Outcome:
    """What one run gave.

    arrays: every parameter's contents at the end, by name (none without values). coverage: how often some
    wave executed each statement.
    """

    arrays: Mapping[str, Array]
    violations: tuple[Violation, ...]
    coverage: Mapping[Stmt, int]


def run(
    kernel: Kernel,
    sizes: Mapping[str, int],
    arrays: Mapping[str, Array] | None = None,
    schedule: Schedule = Schedule(),  # noqa: B008 reason: frozen
    *,
    tags: bool = True,
    values: bool = True,
    seed: int = 0,
    blocks: Sequence[tuple[int, ...]] | None = None,
    limit: int = 20,
) -> Outcome:
    """Run `kernel` and report what it violates.

    arrays: inputs by name, random from `seed` where absent. tags: track tags and judge what depends on them.
    values: compute. blocks: those to run, all by default. limit: distinct violations kept.
    Raises KeyError for a size without a value, ArgusError (E501) for a construct without a meaning here.
    """
    return run_prepared(
        Prepared(kernel), sizes, arrays, schedule, tags=tags, values=values, seed=seed, blocks=blocks, limit=limit
    )


def run_prepared(
    prepared: Prepared,
    sizes: Mapping[str, int],
    arrays: Mapping[str, Array] | None,
    schedule: Schedule,
    *,
    tags: bool,
    values: bool,
    seed: int = 0,
    blocks: Sequence[tuple[int, ...]] | None = None,
    limit: int = 20,
) -> Outcome:
    """`run`, for a kernel that is run many times."""
    kernel = prepared.kernel
    if kernel.cluster != (1,):
        raise not_built("cluster of blocks", kernel.body[0])
    values = values or any(isinstance(stmt, Map) and _compares(stmt.elem) for stmt in walk(kernel.body))
    env = {symbol: sizes[symbol.name] for symbol in kernel.sizes}
    launch = Launch(prepared, env, {}, values, tags, Adversary(schedule), Reporter(limit))
    with np.errstate(all="ignore"):
        _load(launch, arrays or {}, seed)
        run_one = run_agents if by_events(kernel) else run_block
        for index in _grid(launch) if blocks is None else blocks:
            run_one(launch, index)
        if tags:
            _judge_tensors(launch, complete=blocks is None and not launch.halted)
    found = {buffer.name: array_of(launch, buffer) for buffer in kernel.parameters} if values else {}
    return Outcome(found, launch.reporter.violations, dict(launch.coverage))


def by_events(kernel: Kernel) -> bool:
    """Whether its threads meet at barriers with phases and named ones, and not at one barrier of all waves."""
    return kernel.roles is not None or "vmem" not in kernel.target.queues


def outputs(kernel: Kernel) -> tuple[Buffer, ...]:
    """The parameters that some copy writes."""
    targets = {stmt.target.buffer for stmt in walk(kernel.body) if isinstance(stmt, Copy)}
    return tuple(buffer for buffer in kernel.parameters if buffer in targets)


def _grid(launch: Launch) -> list[tuple[int, ...]]:
    return list(product(*(range(number(launch, extent)) for extent in launch.prepared.kernel.grid)))


def _compares(elem: Elem | Test) -> bool:
    return any(isinstance(node, Compare) for node in parts_first(elem))


def _load(launch: Launch, arrays: Mapping[str, Array], seed: int) -> None:
    """Global memory as the launch finds it: inputs, poisoned outputs, tags."""
    kernel = launch.prepared.kernel
    body = tuple(walk(kernel.body))
    read = {stmt.source.buffer for stmt in body if isinstance(stmt, Copy)}
    written = outputs(kernel)
    random = np.random.default_rng(seed)
    for buffer in kernel.parameters:
        launch.tensors[buffer] = cells = blank(
            _extent(launch, buffer), buffer.dtype, values=launch.values, tags=launch.tags
        )
        if buffer in read or buffer not in written:
            _fill(launch, buffer, cells, arrays.get(buffer.name), random)
    claims = [claim.view.buffer for claim in launch.prepared.counted] if launch.tags else []
    launch.written = {buffer: Written.of(_extent(launch, buffer)) for buffer in claims if buffer in launch.tensors}
    for stmt in body:
        if isinstance(stmt, Tag) and stmt.view.buffer in launch.tensors:
            _tag(launch, stmt)


def _tag(launch: Launch, stmt: Tag) -> None:
    nodes: list[Index] = [node for _, node in stmt.names] + list(stmt.view.at)
    if any(symbol not in launch.sizes for symbol in symbols(*nodes)):
        raise not_built("tags that depend on more than coordinates and sizes", stmt)
    tag(launch, stmt.view, stmt.names)


def _extent(launch: Launch, buffer: Buffer) -> int:
    assert isinstance(buffer.layout, Strided), buffer.name
    shape = [number(launch, extent) for extent in buffer.shape]
    strides = [number(launch, stride) for stride in buffer.layout.strides]
    if prod(shape) == 0:
        return 1
    return 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))


def _fill(launch: Launch, buffer: Buffer, cells: Cells, given: Array | None, random: np.random.Generator) -> None:
    every = elements(launch, whole(buffer))
    if cells.marks is not None:
        cells.marks[every.cell] = PLAIN
    if cells.values is not None:
        cells.values[every.cell] = _contents(buffer, every.shape, given, random).reshape(-1)


def _contents(buffer: Buffer, shape: tuple[int, ...], given: Array | None, random: np.random.Generator) -> AnyArray:
    if given is not None:
        return np.broadcast_to(np.asarray(given).astype(buffer.dtype.numpy, copy=False), shape)
    if buffer.dtype.family == "float":
        return random.standard_normal(shape).astype(buffer.dtype.numpy)
    return random.integers(0, 8, shape).astype(buffer.dtype.numpy)


def _judge_tensors(launch: Launch, *, complete: bool) -> None:
    for stmt in walk(launch.prepared.kernel.body):
        if isinstance(stmt, Assert) and isinstance(stmt.claim, WrittenOnce):
            written_once(launch, stmt, stmt.claim, complete=complete)
