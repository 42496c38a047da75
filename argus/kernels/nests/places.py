"""Places of extrema along an axis that is not contiguous in memory: a thread has a column, and reads it once.

It keeps the greatest element so far and its place. NaN is greater than numbers, and of equal elements the first counts,
as in torch.
"""

# Without `from __future__ import annotations`: kernels are traced with this file.

from collections.abc import Mapping
from math import inf, prod
from typing import Any

from attrs import frozen

from argus.kernels.nests.bodies import Place, TileBody
from argus.kernels.nests.tiles import Tile, TileAxis
from argus.language import (
    Tensor,
    assume,
    block_id,
    ceil_div,
    copy,
    f32,
    i32,
    loop,
    maximum_nan,
    minimum_nan,
    registers,
    sm_90a,
    where,
)
from argus.nests.affine import computed
from argus.nests.canonical import Canonical
from argus.nests.nest import Reduce
from argus.nests.rewrite import reads, reductions
from argus.nests.terms import literal_factors

_LARGEST = 1 << 40
"""Elements of a tensor, so that offsets in bytes fit 64 bits."""
_LARGEST_PLACE = 1 << 30
_FEWEST = 1 << 15
"""Columns from which on a thread for each keeps memory busy."""
_LOADED = {"f32", "bf16", "f16"}
_STORED = ("i32", "i64")


@frozen
class Places:
    """Blocks of `threads` columns. unroll: iterations of the loop along the column whose loads are in flight."""

    threads: int = 512
    unroll: int = 8
    target = sm_90a


def config_for(form: Canonical, sizes: Mapping[str, int]) -> Places | None:
    """The configuration for one place of an extremum for each of many columns; None for other nests."""
    if len(form.nests) != 1 or not isinstance(of := form.nests[0].body, Reduce):
        return None
    (nest,) = form.nests
    if of.op not in ("argmax", "argmin") or reductions(of.body) or nest.dtype not in _STORED or not nest.domain:
        return None
    last = nest.domain[-1].name
    read = reads(of.body)
    columns = all((literal_factors(each.index[-1], {last}) or {}).get(last) == 1 for each in read)
    count = prod(int(computed(axis.extent, sizes)) for axis in nest.domain)
    known = {each.dtype for each in read} <= _LOADED
    return Places() if read and columns and known and count >= _FEWEST else None


def places(form: Canonical, tensors: Mapping[str, Tensor], sizes: Mapping[str, Any], cfg: Places) -> None:
    """Store the place of each column."""
    (nest,) = form.nests
    of = nest.body
    assert isinstance(of, Reduce)
    (along,) = of.axes
    for tensor in tensors.values():
        assume(prod(tensor.shape, start=1) <= _LARGEST)
    *outer, last = [computed(axis.extent, sizes) for axis in nest.domain]
    length = computed(along.extent, sizes)
    assume(length >= 1, length <= _LARGEST_PLACE)
    number, *at = block_id((ceil_div(last, cfg.threads), *outer))
    tile = Tile((TileAxis(cfg.threads),))
    around = {axis.name: Place(each) for axis, each in zip(nest.domain, at, strict=False)}
    around[nest.domain[-1].name] = Place(number * cfg.threads, 0)
    best, place = registers(f32, tile.layout), registers(i32, tile.layout)
    greatest = of.op == "argmax"
    best[:], place[:] = (-inf if greatest else inf), 0
    for k in loop(length, unroll=cfg.unroll):
        v = TileBody(tensors, sizes, tile, {**around, along.name: Place(k)}).value(of.body)
        better = v > best if greatest else v < best
        place[:] = where(better | ((v != v) & (best == best)), k, place)  # noqa: PLR0124 reason: tests for NaN
        best[:] = maximum_nan(best, v) if greatest else minimum_nan(best, v)
    output = tensors[nest.output]
    kept = place if output.dtype == i32 else place.to(output.dtype)
    copy(kept, output[(*at, slice(None))].tile((cfg.threads,), (number,)), edge=0)
