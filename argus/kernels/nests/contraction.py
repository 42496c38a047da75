"""Convolutions as programs: inputs and filters are laid out, one launch multiplies, classes of outputs are joined."""

# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# Reason: parameters are annotated with tensors of a variable type, by which one text serves all axes.
# Without `from __future__ import annotations`: kernels are traced with this file, and annotations name variables.

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from typing import Any

from argus.kernels.nests.claims import claim
from argus.kernels.nests.fragments import TYPES
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
from argus.language import Int, ProgramTemplate, Tensor, bf16, ceil_div, f32, kernel, program, workspace
from argus.nests.convolution import Convolution, nest_of_sizes


def convolution(conv: Convolution, dtype: str, configs: Mapping[str, Shifted]) -> ProgramTemplate:
    """The programs Y = conv(X, F) of tensors of this type, one for each configuration, with the claim of the nest.

    X is (N, C, *inputs), F (O, C / groups, *taps) or transposed (C, O / groups, *taps), and Y (N, O, *outputs); outputs
    are as many as the caller wants, and inputs beyond the given ones are 0.
    """
    many = conv.groups * conv.classes
    axes = range(len(conv.axes))
    nest = nest_of_sizes(conv, dtype)
    ins, outs, laid = (" ".join(f"{letter}{axis}" for axis in axes) for letter in "IYU")
    taps = " ".join(str(axis.taps) for axis in conv.axes)
    first, second = ("C", "O") if conv.transposed else ("O", "C")
    names = first, second if conv.groups == 1 else "B"
    own = TYPES[dtype]
    element = bf16 if own is f32 else own
    of_x, of_f, of_y = (
        Tensor[f"N C {ins}", own],
        Tensor[f"{' '.join(names)} {taps}", own],
        Tensor[f"N O {outs}", own],
    )
    of_inputs, of_filters = Tensor[f"Z {laid} D", element], Tensor["T M D", element]
    quotients = " ".join(f"K{axis}" for axis in axes)
    of_r = Tensor[f"S M {quotients}", f32 if many > 1 else own]

    def inputs(X: Tensor, *p: Tensor, cfg: Laying, channels: Int) -> None:
        lay_out_inputs(conv, X, p, channels, cfg)

    def filters(F: Tensor, *q: Tensor, cfg: Laying, outputs: Int) -> None:
        lay_out_filters(conv, F, q, outputs, cfg)

    def multiply(*tensors: Tensor, cfg: Shifted) -> None:
        *operands, result = tensors
        sum_shifted(conv, operands[: cfg.parts], operands[cfg.parts :], result, cfg)

    @kernel
    def interleave(R: of_r, Y: of_y, *, cfg: Laying) -> None:
        give_back(conv, R, Y, cfg)

    @program(configs=configs)
    def conv_program(X: of_x, F: of_f, Y: of_y, *, cfg: Shifted) -> None:
        N, C, *_ = X.shape
        _, O, *extents = Y.shape  # noqa: E741 reason: output channels
        channels = C if conv.groups == 1 else C // conv.groups if conv.transposed else F.shape[1]
        outputs = O if conv.groups == 1 else F.shape[1] if conv.transposed else O // conv.groups
        windows = [ceil_div(y, axis.classes) for axis, y in zip(conv.axes, extents, strict=True)]
        rows = [q + axis.reach for axis, q in zip(conv.axes, windows, strict=True)]
        D, parts = padded_channels(channels), range(cfg.parts)
        p = {f"P{j}": workspace(element, (N * conv.phases * conv.groups, *rows, D)) for j in parts}
        q = {f"Q{j}": workspace(element, (conv.taps * many, outputs, D)) for j in parts}
        of_p, of_q = dict.fromkeys(p, of_inputs), dict.fromkeys(q, of_filters)
        lay_inputs = kernel(_of_tensors(inputs, {"X": of_x} | of_p, Laying, "channels"))
        lay_filters = kernel(_of_tensors(filters, {"F": of_f} | of_q, Laying, "outputs"))
        multiplied = kernel(_of_tensors(multiply, of_p | of_q | {"R": of_r}, Shifted))
        lay_inputs(X, *p.values(), cfg=Laying(cfg), channels=channels)
        lay_filters(F, *q.values(), cfg=Laying(cfg), outputs=outputs)
        if many == 1:
            multiplied(*p.values(), *q.values(), Y, cfg=cfg)
        else:
            R = workspace(f32, (N * many, outputs, *windows))
            multiplied(*p.values(), *q.values(), R, cfg=cfg)
            interleave(R, Y, cfg=Laying(cfg))
        sizes = {"N": N, "C": C, "O": O} | ({} if conv.groups == 1 else {"B": F.shape[1]})
        sizes |= {f"{letter}{axis}": t.shape[2 + axis] for letter, t in (("I", X), ("Y", Y)) for axis in axes}
        products = cfg.products

        def of_parts(x: Any, y: Any) -> Any:  # noqa: ANN401 reason: values of formulas
            return rounded_product(x, y, products)

        claim(nest, {"X": X, "F": F, "Y": Y}, sizes, of_parts if own is f32 else None)

    return conv_program


def _of_tensors(
    function: Callable[..., None], tensors: Mapping[str, Any], cfg: type, *sizes: str
) -> Callable[..., None]:
    """The function with these tensors as its parameters, of which it takes any number, a configuration, and sizes."""
    given = [Parameter(each, Parameter.POSITIONAL_OR_KEYWORD) for each in tensors]
    keywords = [Parameter(each, Parameter.KEYWORD_ONLY) for each in ("cfg", *sizes)]
    vars(function)["__signature__"] = Signature([*given, *keywords])
    function.__annotations__ = {**tensors, "cfg": cfg, **dict.fromkeys(sizes, Int)}
    return function
