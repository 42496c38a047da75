"""Compiled products and convolutions with what follows them, in one kernel, in two, and in eager torch, on an H200.

`python benchmarks/fused_h200.py` compiles each case as one graph, and its two halves as graphs of their own, compares
both with float64, and prints medians of interleaved calls after an overwritten cache. `--of`: cases whose name has it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from math import prod
from typing import Any

from attrs import frozen
from torch.nn.functional import conv2d

import argus
import argus.torch
from argus.torch.kernelbench.timing import interleaved

Tensors = Sequence[Any]
_MATRIX = 2
"""Its axes."""


@frozen
class Case:
    """first: of the inputs. then: of its result and all inputs. inputs: shapes, each drawn normally and scaled."""

    name: str
    first: Callable[..., Any]
    then: Callable[..., Any]
    inputs: tuple[tuple[int, ...], ...]
    dtype: str = "float32"


def _linear(x: Any, w: Any, *_: Any) -> Any:  # noqa: ANN401 reason: tensors
    return x @ w.mT


def _conv(x: Any, w: Any, *_: Any) -> Any:  # noqa: ANN401 reason: tensors
    return conv2d(x, w, padding=1)


def _swish(y: Any, _x: Any, _w: Any, bias: Any) -> Any:  # noqa: ANN401 reason: tensors
    y = y + bias
    return y * y.sigmoid() * 2.0


def _relu(y: Any, _x: Any, _w: Any, bias: Any) -> Any:  # noqa: ANN401 reason: tensors
    return (y + bias).relu()


def _residual(y: Any, _x: Any, _w: Any, other: Any) -> Any:  # noqa: ANN401 reason: tensors
    return y + other


def _row_factor(y: Any, _x: Any, _w: Any, row: Any) -> Any:  # noqa: ANN401 reason: tensors
    return y * row


CASES = (
    Case("128 x 32768 x 32768, swish", _linear, _swish, ((128, 32768), (32768, 32768), (32768,))),
    Case("128 x 16384 x 16384, swish", _linear, _swish, ((128, 16384), (16384, 16384), (16384,))),
    Case("1024 x 8192 x 8192, swish", _linear, _swish, ((1024, 8192), (8192, 8192), (8192,))),
    Case("1024 x 8192 x 8192, residual", _linear, _residual, ((1024, 8192), (8192, 8192), (1024, 8192))),
    Case("bf16 4096 cubed, factor of rows", _linear, _row_factor, ((4096, 4096), (4096, 4096), (4096, 1)), "bfloat16"),
    Case("bf16 32 of 1024 cubed, relu", _linear, _relu, ((32, 1024, 1024), (32, 1024, 1024), (1024,)), "bfloat16"),
    Case(
        "bf16 32 of 1024 cubed, residual",
        _linear,
        _residual,
        ((32, 1024, 1024), (32, 1024, 1024), (32, 1024, 1024)),
        "bfloat16",
    ),
    Case("3 x 3 convolution of 64 channels, relu", _conv, _relu, ((32, 64, 128, 128), (64, 64, 3, 3), (64, 1, 1))),
    Case(
        "3 x 3 convolution of 64 channels, residual",
        _conv,
        _residual,
        ((32, 64, 128, 128), (64, 64, 3, 3), (32, 64, 128, 128)),
    ),
)


def _drawn(torch: Any, case: Case) -> list[Any]:  # noqa: ANN401 reason: untyped
    """Of about unit variance after the product."""
    x, w, other = case.inputs[0], case.inputs[1], case.inputs[2]
    scale = prod(w[1:] if case.first is _conv else [*w][-1:]) ** -0.5
    made = [torch.randn(*x, device="cuda"), torch.randn(*w, device="cuda") * scale, torch.randn(*other, device="cuda")]
    return [each.to(getattr(torch, case.dtype)) for each in made]


def _error(case: Case, given: Tensors, found: Any) -> float:  # noqa: ANN401 reason: a tensor
    """The largest error of the last input or rows, relative to 1 + the value, in float64 on their own inputs."""
    first, rows = (1 if given[0].ndim > _MATRIX else 8), given[0].shape[0]
    whole = (each.ndim == given[0].ndim and each.shape[0] == rows and n != 1 for n, each in enumerate(given))
    part = [each[-first:].double() if own else each.double() for each, own in zip(given, whole, strict=True)]
    part[1] = given[1][-first:].double() if case.first is _linear and given[1].ndim > _MATRIX else part[1]
    exact = case.then(case.first(*part), *part)
    return float(((found[-first:].double() - exact).abs() / (1 + exact.abs())).max())


def _measured(torch: Any, case: Case, rounds: int) -> None:  # noqa: ANN401 reason: untyped
    torch.compiler.reset()
    argus.torch.clear_report()
    given = _drawn(torch, case)

    def whole(*inputs: Any) -> Any:  # noqa: ANN401 reason: tensors
        return case.then(case.first(*inputs), *inputs)

    start = time.perf_counter()
    fused = torch.compile(whole, backend="argus", dynamic=False)
    first, then = (torch.compile(each, backend="argus", dynamic=False) for each in (case.first, case.then))

    def apart(*inputs: Any) -> Any:  # noqa: ANN401 reason: tensors
        return then(first(*inputs), *inputs)

    calls: dict[str, Callable[..., Any]] = {"eager": whole, "fused": fused, "in two": apart}
    errors = {name: _error(case, given, call(*given)) for name, call in calls.items()}
    took = time.perf_counter() - start
    known = [f"{each.name} {each.config}" for entry in argus.torch.report() for each in entry.kernels]
    left = {each.operation for entry in argus.torch.report() for each in entry.eager}

    times = interleaved(calls, lambda _: list(given), rounds).device
    shown = "  ".join(
        f"{name} {times[name]:8.3f} ms ({times['eager'] / times[name]:.2f}, error {errors[name]:.1e})" for name in calls
    )
    print(f"{case.name:40} {shown}  {took:.0f} s to compile; in eager torch: {sorted(left) or 'nothing'}", flush=True)
    print(f"{'':40} {'; '.join(known)}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--of", default="")
    parser.add_argument("--seconds", type=float, default=600.0, help="no case is begun after so many")
    chosen = parser.parse_args()
    torch: Any = import_module("torch")
    torch.manual_seed(0)
    began = time.perf_counter()
    with torch.no_grad(), argus.use_solver("z3"):
        for case in CASES:
            if chosen.of in case.name and time.perf_counter() - began < chosen.seconds:
                _measured(torch, case, chosen.rounds)
                torch.cuda.empty_cache()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
