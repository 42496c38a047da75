"""Convolutions as programs: inputs and filters are laid out, one launch multiplies, classes of outputs are joined."""

# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# Reason: parameters are annotated with tensors of a variable type, by which one text serves all axes.
# Without `from __future__ import annotations`: kernels are traced with this file, and annotations name variables.

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from attrs import frozen

from argus.kernels.nests.claims import claim
from argus.kernels.nests.fragments import TYPES
from argus.kernels.nests.made import program_template, sizes_of, specs_of
from argus.kernels.nests.tails import NestTail
from argus.kernels.schedules.parts_claims import rounded_product
from argus.kernels.schedules.shifted import (
    Laying,
    Shifted,
    give_back,
    lay_out_filters,
    lay_out_inputs,
    padded_channels,
    sum_shifted,
)
from argus.kernels.schedules.shifted_classes import Classes, sum_classes
from argus.kernels.signatures import of_tensors
from argus.language import Int, ProgramTemplate, Tensor, bf16, ceil_div, f32, kernel, program, workspace
from argus.nests.canonical import Canonical
from argus.nests.convolution import Convolution, nest_of_sizes
from argus.nests.nest import Nest, Reduce, TensorType
from argus.nests.rewrite import reads, symbols_of

Config = Shifted | Classes
"""Of the launch that multiplies."""


def convolution(conv: Convolution, dtype: str, configs: Mapping[str, Config]) -> ProgramTemplate:
    """The programs Y = conv(X, F) of tensors of this type, one for each configuration, with the claim of the nest.

    X is (N, C, *inputs), F (O, C / groups, *taps) or transposed (C, O / groups, *taps), and Y (N, O, *outputs); outputs
    are as many as the caller wants, and inputs beyond the given ones are 0.
    """
    return convolution_program(conv, *nest_of_sizes(conv, dtype), configs)


def convolution_program(
    conv: Convolution,
    nest: Nest,
    types: Sequence[TensorType],
    configs: Mapping[str, Config],
    name: str = "convolution",
) -> ProgramTemplate:
    """The programs of a nest that is this convolution, as `convolution_of` says. types: inputs, filters, output."""
    of_x, of_f, of_y = (Tensor[" ".join(each.extents), TYPES[each.dtype]] for each in types)

    def made(X: Tensor, F: Tensor, Y: Tensor, *, cfg: Config) -> None:
        _launches(conv, X, F, Y, cfg)
        sizes: dict[str, Any] = {}
        named = {each.name: tensor for each, tensor in zip(types, (X, F, Y), strict=True)}
        for each in types:
            sizes |= dict(zip(each.extents, named[each.name].shape, strict=True))
        products = cfg.products

        def of_parts(x: Any, y: Any) -> Any:  # noqa: ANN401 reason: values of formulas
            return rounded_product(x, y, products)

        claim(nest, named, sizes, of_parts if X.dtype is f32 else None)

    function = of_tensors(made, {types[0].name: of_x, types[1].name: of_f, types[2].name: of_y}, Shifted)
    function.__name__ = name
    return program(configs=configs)(function)


@frozen
class FoundConvolution:
    """The convolution within a nest. sums: its reduction. types: of inputs, filters and output."""

    conv: Convolution
    sums: Reduce
    types: Sequence[TensorType]


def convolution_and_work(form: Canonical, found: FoundConvolution, config: Config, name: str) -> ProgramTemplate:
    """The program of a nest that computes its elements from those of a convolution with one class and group."""
    products = config.products

    def of_parts(x: Any, y: Any) -> Any:  # noqa: ANN401 reason: values of formulas
        return rounded_product(x, y, products)

    multiply = of_parts if found.types[0].dtype == "f32" else None
    return program_template(form, partial(launches_and_work, found), config, name, multiply)


def launches_and_work(
    found: FoundConvolution,
    form: Canonical,
    tensors: Mapping[str, Tensor],
    _: Mapping[str, Any],
    cfg: Config,
) -> None:
    """The launches of the convolution, the last of which computes the nest's elements from its sums."""
    nest, result, specs = form.nests[0], found.types[2].name, specs_of(form)
    inner = {axis.symbol for axis in found.sums.axes}
    beside = {each.tensor for each in reads(nest.body) if not symbols_of(each) & inner}
    names = (result, *(each for each in specs if each in beside))

    def tail(named: Mapping[str, Tensor]) -> NestTail:
        n, o, *spaces = nest.domain
        inner = min(2, len(spaces)) if isinstance(cfg, Classes) else 1
        axes, around = (o, *spaces[-inner:]), (n, *spaces[:-inner])
        return NestTail(nest.body, found.sums, axes, around, named, sizes_of(form, named), wide=False)

    x, f, y = (tensors[each.name] for each in found.types)
    _launches(found.conv, x, f, y, cfg, _Work(tail, {each: (tensors[each], specs[each]) for each in names}))


@frozen
class _Work:
    """What becomes of sums. tail: by the tensors of the launch that stores them. tensors: the result, and what is read
    beside, by name, with their annotations.
    """

    tail: Callable[[Mapping[str, Tensor]], NestTail]
    tensors: Mapping[str, tuple[Tensor, Any]]


def _launches(conv: Convolution, X: Tensor, F: Tensor, Y: Tensor, cfg: Config, work: _Work | None = None) -> None:
    """Lay out inputs and filters, multiply, and join classes of outputs."""
    own = X.dtype
    element, many, parts = bf16 if own is f32 else own, conv.groups * conv.classes, range(cfg.parts)
    first, second, *taps = F.shape
    N, O, *extents = Y.shape  # noqa: E741 reason: output channels
    # Of the inputs, whose channels are a size: the filters' may be a number, and beyond both all is 0.
    channels = X.shape[1] if conv.groups == 1 else first // conv.groups if conv.transposed else second
    outputs = O if conv.groups == 1 else second if conv.transposed else O // conv.groups
    windows = [ceil_div(y, axis.classes) for axis, y in zip(conv.axes, extents, strict=True)]
    if isinstance(cfg, Classes) and len(windows) > 1:
        windows[-2] = cfg.rows * ceil_div(windows[-2], cfg.rows)
    rows = [q + axis.reach for axis, q in zip(conv.axes, windows, strict=True)]
    D = padded_channels(channels)
    p = {f"P{j}": workspace(element, (N * conv.phases * conv.groups, *rows, D)) for j in parts}
    q = {f"Q{j}": workspace(element, (conv.taps * many, outputs, D)) for j in parts}

    def inputs(X: Tensor, *p: Tensor, cfg: Laying, channels: Int) -> None:
        lay_out_inputs(conv, X, p, channels, cfg)

    def filters(F: Tensor, *q: Tensor, cfg: Laying, outputs: Int) -> None:
        lay_out_filters(conv, F, q, outputs, cfg)

    sums: Any = sum_classes if isinstance(cfg, Classes) else sum_shifted

    def multiply(*tensors: Tensor, cfg: Config) -> None:
        operands, results = tensors[: 2 * cfg.parts], tensors[2 * cfg.parts :]
        tail = None if work is None else work.tail(dict(zip(work.tensors, results, strict=True)))
        sums(conv, operands[: cfg.parts], operands[cfg.parts :], results[0], cfg, tail)

    def interleave(R: Tensor, Y: Tensor, *, cfg: Laying) -> None:
        give_back(conv, R, Y, cfg)

    ins, outs, laid, quotients = (" ".join(f"{letter}{axis}" for axis in range(len(conv.axes))) for letter in "IYUK")
    of_p, of_q = dict.fromkeys(p, Tensor[f"Z {laid} D", element]), dict.fromkeys(q, Tensor["T M D", element])
    of_x, of_y = {"X": Tensor[f"N C {ins}", own]}, {"Y": Tensor[f"N O {outs}", own]}
    of_f = {"F": Tensor[" ".join(("A", "B", *map(str, taps))), own]}
    of_r = {"R": Tensor[f"S M {quotients}", f32 if many > 1 else own]}
    lay_inputs = kernel(of_tensors(inputs, of_x | of_p, Laying, "channels"))
    lay_filters = kernel(of_tensors(filters, of_f | of_q, Laying, "outputs"))
    lay_inputs(X, *p.values(), cfg=Laying(cfg), channels=channels)
    lay_filters(F, *q.values(), cfg=Laying(cfg), outputs=outputs)
    given: dict[str, Any] = {name: spec for name, (_, spec) in work.tensors.items()} if work else {}
    results = [each for each, _ in work.tensors.values()] if work else [Y]
    apart = many > 1 and not isinstance(cfg, Classes)
    if apart:
        assert work is None
        R = workspace(f32, (N * many, outputs, *windows))
        results = [R]
    if not given:
        given = of_y if isinstance(cfg, Classes) else of_r
    kernel(of_tensors(multiply, of_p | of_q | given, type(cfg)))(*p.values(), *q.values(), *results, cfg=cfg)
    if apart:
        kernel(of_tensors(interleave, of_r | of_y, Laying))(*results, Y, cfg=Laying(cfg))
