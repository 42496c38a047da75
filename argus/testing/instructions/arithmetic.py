"""Test kernels of one element-wise operation each: these are not in the instruction table, but must be as exact."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf

from argus.core.dsl.tiles.fragments import elementwise
from argus.core.dtype import DType
from argus.language import Fragment, Tensor, bf16, copy, f16, f32, fma, load, maximum, minimum, spread, where
from argus.testing.instructions.trial import Trial, trial

_TILE = (64, 16)
_EXACT: dict[str, Callable[[Fragment, Fragment], Fragment]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "neg": lambda a, _: -a,
    "max": maximum,
    "min": minimum,
    "fused": lambda a, b: a * b + a,
    "fma": lambda a, b: fma(a, b, a),
    "abs": lambda a, _: elementwise("abs", a),
    "sqrt": lambda a, _: elementwise("sqrt", a),
    "where": lambda a, b: where(a.index[1] < 5, maximum(a, b), -inf),
}


def arithmetic_trials() -> Iterator[Trial]:
    for dtype in (f32, bf16, f16):
        for name, operation in _EXACT.items():
            yield _operation(name, operation, dtype)
    for source in (f32, bf16, f16):
        for target in (f32, bf16, f16):
            if source != target:
                yield _conversion(source, target)


def _operation(name: str, operation: Callable[[Fragment, Fragment], Fragment], dtype: DType) -> Trial:
    by = spread(_TILE, threads=128, vector=8)

    def compute(A: Tensor, B: Tensor, C: Tensor) -> None:  # noqa: N803 reason: tensors
        copy(operation(load(A, by), load(B, by)), C)

    shape = " ".join(map(str, _TILE))
    return trial(f"{name} {dtype}", "elements", compute, dict.fromkeys("ABC", (shape, dtype)), determined="values")


def _conversion(source: DType, target: DType) -> Trial:
    by = spread(_TILE, threads=128, vector=8)

    def compute(A: Tensor, C: Tensor) -> None:  # noqa: N803 reason: tensors
        copy(load(A, by).to(target), C)

    shape = " ".join(map(str, _TILE))
    return trial(
        f"{source} to {target}", "elements", compute, {"A": (shape, source), "C": (shape, target)}, determined="values"
    )
