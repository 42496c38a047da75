"""The work of a kernel at sizes, for bounds: what its matrix instructions multiply, and each of its tensors once."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from argus.core.cost.counts import block_numbers, everyone, runs
from argus.core.cost.groups import cast_of, sizes_of
from argus.core.cost.machine import MACHINES
from argus.core.cost.places import value_of
from argus.core.index import Index
from argus.core.ir import Buffer, Copy, Kernel, Mma, walk
from argus.policy.bounds import Work


def work_of(kernel: Kernel, sizes: Mapping[str, int]) -> Work:
    """Products and sums of the first block's matrix instructions times all blocks, by the type of what is multiplied;
    other arithmetic counts nothing. Raises KeyError for a size that is not given.
    """
    blocks = prod(_number(extent, kernel, sizes) for extent in kernel.grid)
    flops: dict[str, float] = {}
    for group in everyone(cast_of(kernel, block_numbers(kernel, sizes))):
        for run in runs(group, MACHINES[kernel.target.name], []):
            if isinstance(run.stmt, Mma):
                left, right = (run.stmt.atom.operands[name] for name in ("a", "b"))
                each = 2.0 * left.tile[0] * left.tile[1] * right.tile[0]
                dtype = "" if left.dtype is None else left.dtype.name
                flops[dtype] = flops.get(dtype, 0.0) + blocks * run.times * run.cost.products * each
    written = outputs(kernel)
    reads = sum(_bytes(each, kernel, sizes) for each in inputs(kernel))
    return Work.of(flops, reads, sum(_bytes(each, kernel, sizes) for each in written))


def inputs(kernel: Kernel) -> tuple[Buffer, ...]:
    """Parameters that are read, or neither read nor written by copies."""
    read = {stmt.source.buffer for stmt in walk(kernel.body) if isinstance(stmt, Copy)}
    written = outputs(kernel)
    return tuple(each for each in kernel.parameters if each in read or each not in written)


def outputs(kernel: Kernel) -> tuple[Buffer, ...]:
    """Parameters that are written."""
    written = {stmt.target.buffer for stmt in walk(kernel.body) if isinstance(stmt, Copy)}
    return tuple(each for each in kernel.parameters if each in written)


def shape_of(buffer: Buffer, kernel: Kernel, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Extents at sizes."""
    return tuple(_number(extent, kernel, sizes) for extent in buffer.shape)


def _bytes(buffer: Buffer, kernel: Kernel, sizes: Mapping[str, int]) -> float:
    return prod(shape_of(buffer, kernel, sizes)) * buffer.dtype.bits / 8


def _number(extent: Index, kernel: Kernel, sizes: Mapping[str, int]) -> int:
    return int(value_of(extent, sizes_of(kernel, sizes)))
