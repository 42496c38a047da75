"""`conv:NxCxHxW:KxRxS[:stride=S][:pad=P][:dilation=D][:bf16|f16|f32]`: convolutions of one to three axes on Hopper.

Inputs are (N, C, *extents) and filters (K, C, *taps). The designs are products of shifted rows, which are programs of
three launches; of f32 also FMAs; and of one tap with steps of one, products of matrices.
"""

# ruff: noqa: N803
# Reason: references have parameters named as tensors of kernels.

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import partial
from itertools import product
from math import ceil, log, log2, prod

import numpy as np
import numpy.typing as npt
from attrs import evolve

from argus.core.cost.machine import MACHINES
from argus.core.ir import Kernel, Program
from argus.kernels import layouts
from argus.kernels.config_names import name_of
from argus.kernels.nests.contraction import convolution_program
from argus.kernels.nests.convolution_costs import SIX
from argus.kernels.nests.direct import direct
from argus.kernels.nests.direct_tiles import Direct, direct_for
from argus.kernels.nests.made import template
from argus.kernels.nests.products import product as product_template
from argus.kernels.schedules.hopper import Hopper
from argus.kernels.schedules.parts import PAIRS
from argus.kernels.schedules.shifted import CHUNK, Shifted
from argus.kernels.schedules.shifted_tiles import shifted_for
from argus.nests.canonical import Canonical, Parameter
from argus.nests.convolution import Taps, convolution_nest, nest_of_sizes
from argus.nests.convolution_forms import ConvolutionForm
from argus.nests.nest import Nest, TensorType, size
from argus.nests.rewrite import with_reads
from argus.search.problems.families.convolution_shape import (
    ConvolutionShape,
    places_of,
    shape_of_name,
    sizes_of,
    without_inputs,
)
from argus.search.problems.families.space import FamilyDesign, FamilySpace, knobs_of, refuse
from argus.search.problems.input_rules import InputRules, Sizes

_SHARED = (227 << 10) - (34 << 10)
"""Bytes of a block for stages: boxes for stores, barriers and alignment take the rest."""
_BLOCKS = (528, 1056, 2112)
_SUMS = 64
"""Of a thread that sums by FMAs."""
_WARPS = 8
_SMALL = 5
Array = npt.NDArray[np.float64]
Config = Shifted | Direct | Hopper


# -- designs -------------------------------------------------------------------------------------------------


def usual_of(shape: ConvolutionShape) -> Config:
    """The configuration that is used without a search: shifted rows as the templates plan them."""
    return shifted_for(shape.conv, shape.c, shape.k, shape.n, shape.across, _products(shape))


def _products(shape: ConvolutionShape) -> int:
    return SIX if shape.dtype == "f32" else 1


def configs(shape: ConvolutionShape) -> Iterator[Config]:
    """The configurations that can take the shape and whose stages fit in shared memory, the usual one first."""
    seen: set[Config] = set()
    for each in (usual_of(shape), *_of_matrices(shape), *_by_fmas(shape), *_shifted(shape)):
        if each not in seen and (not isinstance(each, Shifted) or stage_bytes(each) * each.stages <= _SHARED):
            seen.add(each)
            yield each


def _shifted(shape: ConvolutionShape) -> Iterator[Shifted]:
    """Tiles by depths by stages, then how operands are laid out."""
    products, wide = _products(shape), (64, 96, 128, 192, 256)
    deepest = CHUNK * ceil(shape.c / CHUNK)
    tiles = [(o, w) for o, w in product((64, 128), wide) if w * o // 128 != _NOT_PROVED]
    for (o, w), bk in product(tiles, (16, 32, 64)):
        if bk > 16 and bk >= 2 * deepest:
            continue  # most of a stage would be zeros
        made = Shifted(o, w, bk, products=products, run=8 if shape.c <= CHUNK else 16)
        most = min(8, _SHARED // stage_bytes(made))
        for stages in sorted({2, 3, 4, most} & set(range(2, most + 1)), reverse=True):
            yield evolve(made, stages=stages)
    usual = usual_of(shape)
    assert isinstance(usual, Shifted)
    for run, blocks in product((8, 16), _BLOCKS):
        yield evolve(usual, run=run, blocks=blocks)


_NOT_PROVED = 48
"""Columns of a warpgroup's tile that stores through boxes of 32 columns do not divide."""


def stage_bytes(config: Shifted) -> int:
    """Bytes of a stage of the ring."""
    return 2 * config.parts * (config.channels + config.pixels) * config.bk


def _by_fmas(shape: ConvolutionShape) -> Iterator[Direct]:
    """Tiles of a thread by warps by lanes, of f32."""
    if shape.dtype != "f32" or shape.pointwise:
        return
    usual = direct_for(ConvolutionForm(shape.conv, "X", "F"), shape.c, shape.k, list(shape.across))
    yield usual
    for each, rows, width, at_once in product((4, 8, 16), (1, 2, 4, 8), (8, 16, 32), (1, 2, 4)):
        flat = len(shape.across) == 1
        warps = min(_WARPS, max(1, ceil(shape.k / each)))
        if each * rows > _SUMS or at_once > shape.c or (flat and width != usual.width) or _WARPS % warps:
            continue
        yield evolve(usual, each=each, rows=rows, width=width, at_once=at_once, channels=warps, more=_WARPS // warps)


def _of_matrices(shape: ConvolutionShape) -> Iterator[Hopper]:
    """Schedules of products, of 16 bits and one tap: K rows of filters by places."""
    if shape.pointwise and shape.dtype != "f32":
        known = layouts.configs_for(shape.k, shape.across[0], shape.c, a_transposed=False, b_transposed=True)
        yield from (each for each in known.values() if isinstance(each, Hopper))


def trace(shape: ConvolutionShape, config: Config, name: str) -> Kernel | Program:
    """The kernel or program Y = conv(X, F), with the claim of the convolution's nest."""
    nest, types = nest_of(shape)
    if isinstance(config, Shifted):
        return convolution_program(shape.conv, nest, types, {"": config}, name).trace("")
    parameters = tuple(Parameter(each, each.name) for each in types)
    names = dict.fromkeys(extent for each in types for extent in each.extents)
    form = Canonical((nest,), parameters, {each: size(each) for each in names if not each.isdigit()})
    if isinstance(config, Direct):
        return template(form, direct, config, name).trace()
    return product_template(form, config, name).trace("")


def nest_of(shape: ConvolutionShape) -> tuple[Nest, tuple[TensorType, TensorType, TensorType]]:
    """The nest and the types of X, F and Y; pointwise, F lacks the axis of one tap, and no read is outside of X."""
    nest, (x, f, y) = nest_of_sizes(shape.conv, shape.dtype)
    if not shape.pointwise:
        return nest, (x, f, y)
    f, x = evolve(f, shape=f.shape[:2]), evolve(x, shape=(*x.shape[:2], y.shape[2]))
    nest = convolution_nest(shape.conv, x, f, y)
    return evolve(nest, body=with_reads(nest.body, lambda read: evolve(read, outside=None))), (x, f, y)


# -- the problem ---------------------------------------------------------------------------------------------


def space(text: str, target: str) -> tuple[str, FamilySpace]:
    """The full name of a problem, and its space. Raises ArgusError (E903)."""
    shape = shape_of_name(text)
    if target != "sm_90a":
        refuse(f"convolutions are searched for sm_90a, found {target}", "name it with --target sm_90a")
    designs: dict[str, FamilyDesign] = {}
    for each in configs(shape):
        name = name_of(each)
        designs[name] = FamilyDesign(
            name, knobs_of(each), partial(trace, shape, each, name), features(shape, each), each
        )
    sizes = shape.sizes
    return shape.name, FamilySpace(
        sizes,
        designs,
        partial(convolution, axes=shape.conv.axes),
        shape.work,
        name_of(usual_of(shape)),
        "planned by the template of convolutions without a search",
        "sm_90a.conv",
        log2(1 + shape.work.bytes / MACHINES["sm_90a"].target.processors),
        shape.place,
        told=f"axes = {shape.conv.axes}\n{inspect.getsource(convolution)}",
        inputs=InputRules(small=partial(_small, shape)),
    )


def convolution(X: Array, F: Array, *, axes: tuple[Taps, ...]) -> Array:
    """For each tap the filter's matrix times the inputs that it reads, summed, in float64.

    X: (n, c, *extents), padded with zeros by axis. F: (k, c, *taps), in which axes of one tap may be left out.
    """
    spaces = [(axis.pad, axis.pad) for axis in axes]
    padded = np.pad(X, [(0, 0), (0, 0), *spaces])
    places = [
        (extent - axis.dilation * (axis.taps - 1) - 1) // axis.stride + 1
        for axis, extent in zip(axes, padded.shape[2:], strict=True)
    ]
    filters = F.reshape(*F.shape[:2], *(axis.taps for axis in axes))
    made = np.zeros((X.shape[0], F.shape[0], int(np.prod(places))))
    for taps in np.ndindex(*filters.shape[2:]):
        read = tuple(
            slice(axis.dilation * tap, axis.dilation * tap + axis.stride * (many - 1) + 1, axis.stride)
            for axis, tap, many in zip(axes, taps, places, strict=True)
        )
        made += filters[(slice(None), slice(None), *taps)] @ padded[(..., *read)].reshape(*X.shape[:2], -1)
    return made.reshape(X.shape[0], F.shape[0], *places)


def _small(shape: ConvolutionShape, generator: np.random.Generator) -> Iterator[Sizes]:
    """Small sizes with as many outputs as the convolution has."""
    while True:
        n, c, k = (int(generator.integers(1, most)) for most in (3, 20, 20))
        if shape.pointwise:  # products of matrices take rows of 16 bytes
            across = 8 * int(generator.integers(1, 8))
            yield without_inputs(sizes_of(n, 8 * ceil(c / 8), k, (), (across,)))
            continue
        least = [max(1, axis.dilation * (axis.taps - 1) + 1 - 2 * axis.pad) for axis in shape.axes]
        extents = tuple(each + int(generator.integers(0, _SMALL)) for each in least)
        places = tuple(places_of(axis, extent) for axis, extent in zip(shape.axes, extents, strict=True))
        yield sizes_of(n, c, k, extents, places)


def features(shape: ConvolutionShape, config: Config) -> dict[str, float]:
    """How a configuration fits a convolution. Unit: natural logarithms of utilisations, at most 0, and shares."""
    rows, depth = shape.n * prod(shape.across[:-1]), CHUNK * ceil(shape.c / CHUNK)
    taps = prod(axis.taps for axis in shape.axes)
    match config:
        case Shifted():
            high, wide, deep = config.channels, config.pixels, config.bk * ceil(depth / config.bk)
            flops, moved = high * wide, stage_bytes(config)
            parts = len(PAIRS.get(config.products, [()]))
            extra = {"stages' bytes": moved * config.stages / _SHARED, "zeros of channels": log(shape.c / deep)}
        case Direct():
            high, line = config.outputs, config.width * config.lines
            wide, parts, flops, moved, extra = line * config.rows, 1, config.each * config.rows, 1, {}
        case Hopper():
            high, wide, parts = config.bm, config.bn, 1
            flops, moved, extra = high * wide, 2 * (high + wide) * config.bk, {}
    tiles = rows * ceil(shape.k / high) * ceil(shape.across[-1] / wide)
    processors = MACHINES["sm_90a"].target.processors
    waves = ceil(tiles / processors)
    return {
        "edge": log(shape.k * shape.across[-1] / (ceil(shape.k / high) * high * ceil(shape.across[-1] / wide) * wide)),
        "last wave": log(tiles / (waves * processors)),
        "depth of a tile": log2(max(1, taps * depth * parts)) / 16,
        "products a byte": log2(flops / moved) / 8,
        **extra,
    }
