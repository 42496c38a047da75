"""All cases of nests, and more: elements by themselves, and rows that a cluster of blocks holds, with variants."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# Functions of torch, which is untyped.

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any

from attrs import evolve

from argus.kernels.nests.pointwise import Pointwise
from argus.kernels.nests.reductions import Reductions
from argus.kernels.schedules.rows import Rows
from argus.nests.nest import Axis, Constant, Expr, Nest, Reduce, size
from argus.testing import nest_cases as cases
from argus.testing.nest_cases import Case, apply, number, read, square, tensor
from benchmarks.families import nests
from benchmarks.families.nests import Function, Given, NestCase, normed, one_nest

A, B, S = (Axis(name, size(name.upper())) for name in ("a", "b", "s"))
_X = read("X", A.index, B.index)
_ELEMENTS = (
    Pointwise(256, 4, 2),
    Pointwise(256, 4, 4),
    Pointwise(512, 4, 2),
    Pointwise(512, 4, 4),
    Pointwise(1024, 4, 1),
    Pointwise(1024, 4, 2),
    Pointwise(128, 4, 4),
    Pointwise(128, 4, 8),
)
_FEW = (Pointwise(256, 4, 2), Pointwise(256, 4, 4), Pointwise(128, 4, 4), Pointwise(512, 4, 2))
_COLUMNS = (
    Reductions(256, 32, 1, 8, columns=True, in_order=False),
    Reductions(256, 32, 1, 8, columns=True),
    Reductions(256, 128, 1, 8, columns=True),
    Reductions(256, 128, 1, 16, columns=True),
    Reductions(256, 256, 1, 8, columns=True),
    Reductions(256, 256, 1, 16, columns=True),
    Reductions(512, 128, 1, 8, columns=True),
    Reductions(128, 128, 1, 16, columns=True),
)
_HELD_COLUMNS = (
    Reductions(256, 32, 4, 8, columns=True, held=True),
    Reductions(512, 32, 4, 4, columns=True, held=True),
    Reductions(512, 32, 2, 4, columns=True, held=True),
    Reductions(128, 32, 1, 16, columns=True, held=True),
    Reductions(512, 64, 2, 8, columns=True, held=True),
    Reductions(256, 64, 2, 16, columns=True, held=True),
)


def _clusters(threads: int, vector: int, steps: int, blocks: int, together: int, *, whole: bool) -> Rows:
    return Rows(threads, 1, vector, steps, staged=True, blocks=blocks, whole=whole, together=together)


_LONG = (
    Reductions(512, 1, 4, 4),
    _clusters(1024, 4, 12, 8, 2, whole=True),
    _clusters(1024, 4, 12, 8, 6, whole=True),
    _clusters(512, 4, 24, 8, 4, whole=True),
    _clusters(512, 4, 24, 8, 6, whole=True),
)
_ODD = (
    Reductions(512, 1, 1, 16),
    _clusters(1024, 1, 16, 4, 8, whole=False),
    _clusters(512, 1, 32, 4, 16, whole=False),
    _clusters(512, 1, 32, 4, 8, whole=False),
    _clusters(512, 1, 16, 8, 16, whole=False),
    _clusters(256, 1, 32, 8, 16, whole=False),
    _clusters(1024, 1, 32, 2, 16, whole=False),
)
_IMAGES = (
    _clusters(1024, 4, 8, 8, 2, whole=True),
    _clusters(512, 4, 16, 8, 4, whole=True),
    _clusters(512, 4, 16, 8, 8, whole=True),
)


def _elements(body: Expr, function: Function, given: Given, *types: Any, configs: tuple[Any, ...] = _FEW) -> NestCase:  # noqa: ANN401 reason: of nests
    case = Case((Nest("Y", "f32", (A, B), body),), types or (tensor("X", A.extent, B.extent),))
    return one_nest(case, given, function, given["A"] * given["B"], configs=configs)


def _gelu() -> Expr:
    half = apply("mul", _X, Constant(0.5))
    return apply("mul", half, apply("add", Constant(1.0), apply("erf", apply("mul", _X, Constant(1 / sqrt(2))))))


def _instances() -> Case:
    """(x - mean) / sqrt(variance + eps) of rows."""
    own, other = Axis("u", B.extent), Axis("v", B.extent)
    mean = apply("div", Reduce("add", (own,), read("X", A.index, own.index)), number(B.extent))
    off = apply("sub", read("X", A.index, other.index), mean)
    variance = apply("div", Reduce("add", (other,), square(off)), number(B.extent))
    scale = apply("rsqrt", apply("add", variance, Constant(1e-5)))
    body = apply("mul", apply("sub", _X, mean), scale)
    return Case((Nest("Y", "f32", (A, B), body),), (tensor("X", A.extent, B.extent),))


_BIG = {"A": 4096, "B": 393216}
_ROWS = {"A": 7168, "B": 1 << 18}
_GROUPS = {"N": 112, "C": 8, "P": 128, "S": 1 << 14}


def _with(name: str, *configs: Any) -> NestCase:  # noqa: ANN401 reason: of any template
    """A case with other variants."""
    return evolve(nests.CASES[name], configs=configs)


CASES: Mapping[str, NestCase] = {
    **nests.CASES,
    "relu19": _elements(apply("max", _X, Constant(0.0)), lambda torch, X: torch.relu(X), _BIG, configs=_ELEMENTS),
    "tanh22": _elements(apply("tanh", _X), lambda torch, X: torch.tanh(X), _BIG),
    "gelu26": _elements(_gelu(), lambda torch, X: torch.nn.functional.gelu(X), _BIG),
    "scale5": _elements(apply("mul", _X, Constant(3.14)), lambda _, X: X * 3.14, {"A": 65536, "B": 16384}),
    "diagonal12": _elements(
        apply("mul", read("D", A.index), _X),
        lambda _, D, X: D.unsqueeze(1) * X,
        {"A": 4096, "B": 4096},
        tensor("X", A.extent, B.extent),
        tensor("D", A.extent),
    ),
    "sum47": _with("sum47", *_COLUMNS),
    "max49": _with("max49", *_COLUMNS),
    "rms36": _with("rms36", *_HELD_COLUMNS),
    "softmax23": _with("softmax23", *_LONG),
    "logsoftmax24": _with("logsoftmax24", *_LONG),
    "l1norm38": _with("l1norm38", *_ODD),
    "l2norm39": one_nest(
        cases.along(cases.l2_norm, columns=False),
        {"A": 32768, "J": 65535},
        lambda torch, X: X / torch.norm(X, p=2, dim=1, keepdim=True),
        32768 * 65535,
        configs=_ODD[:4],
        unit=1e-3,
    ),
    "whole34": one_nest(
        _instances(),
        _ROWS,
        lambda torch, X: torch.nn.functional.instance_norm(X.unsqueeze(0)).squeeze(0),
        7168 << 18,
        configs=_IMAGES,
    ),
    "groups35": normed(
        (nests.N, nests.C), _GROUPS, lambda torch, X: torch.nn.functional.group_norm(X.flatten(1, 2), 8).view(X.shape)
    ),
}
