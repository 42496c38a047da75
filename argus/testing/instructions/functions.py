"""Kernels of one element function each, what their text computes on the CPU, and its error beside float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import erf
from typing import Any

import numpy as np
import numpy.typing as npt

from argus.core.dsl.tiles.fragments import elementwise
from argus.core.dtype import DType, f32
from argus.core.elementwise import ELEMENT_OPS
from argus.core.ir import Kernel
from argus.core.target import Target
from argus.emit.cpu.compiler import compile_unit
from argus.language import Tensor, block_id, ceil_div, copy, kernel, load, spread, vmem
from argus.runtime.cpu.launch import Limits, laid_out, run_unit, schedule_of, strides_of, view_of
from argus.runtime.cpu.validate import emitted, unit

Array = npt.NDArray[Any]
Exact = npt.NDArray[np.float64]
SECONDS = 120.0
"""Time limit of a launch."""
_BLOCK = 1024


POWERS = (1.7, -0.3, 3.0, -2.0, 0.3333333, 5.0)
"""Exponents of which errors of powers are measured."""


def _erf(x: Exact) -> Exact:
    return np.array([erf(each) for each in x.tolist()])


IN_DOUBLE: Mapping[str, Callable[[Exact], Exact]] = {
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "tanh_accurate": np.tanh,
    "erf": _erf,
    "expm1": np.expm1,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
}
"""Functions whose text is compared with the same function in float64."""


def function_kernel(name: str, target: Target, dtype: DType = f32) -> Kernel:
    """Y = f(X), or f(X, Z) of an operation on two elements."""
    by = spread((_BLOCK,), threads=128, vector=4)
    arity = ELEMENT_OPS[name].arity

    def function(X: Tensor, Z: Tensor, Y: Tensor) -> None:  # noqa: N803 reason: tensors
        (block,) = block_id((ceil_div(X.shape[0], _BLOCK),))
        read = [load(each.tile((_BLOCK,), (block,)), by, edge=0) for each in (X, Z)[:arity]]
        if target.name == "gfx942":
            vmem.wait(0)
        copy(elementwise(name, *read), Y.tile((_BLOCK,), (block,)), edge=0)

    function.__annotations__ = dict.fromkeys("XZY", Tensor["N", dtype])
    return kernel(target=target, threads=128, name=f"{name}_of_{dtype}")(function).trace()


def on_cpu(made: Kernel, x: Array, z: Array | None = None) -> Array:
    """Y, as the emitted text computes it. x, z: a multiple of four elements. Raises ArgusError (E303, E304)."""
    text = emitted(made)
    own = unit(text)
    arrays = {"X": x, "Z": x if z is None else z, "Y": np.full_like(x, np.nan)}
    sizes = {"N": len(x)}
    tensors = laid_out(made, sizes, arrays, frozenset())
    answer = run_unit(compile_unit(own), own, made, text.info, sizes, tensors, schedule_of(0), Limits(SECONDS))
    assert not answer.ended, answer.ended
    assert not answer.findings, answer.findings
    return view_of(answer.tensors["Y"].held, x.shape, strides_of(made, "Y", sizes))


def numbers(step: int) -> npt.NDArray[np.float32]:
    """Every step-th f32 number by its bits, of all signs and exponents, and those that are special; a multiple of 4."""
    drawn = np.arange(0, 1 << 32, step, dtype=np.uint64).astype(np.uint32).view(np.float32)
    special = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 88.7, -104, 2.0**-149, 3.4e38, 0.5], np.float32)
    found = np.concatenate([special, drawn])
    return found[: len(found) // 4 * 4]


def units_off(found: Array, exact: Exact) -> Exact:
    """The error in units of the last place of the nearest f32; 0 where both are NaN or the same infinity."""
    with np.errstate(all="ignore"):
        nearest = exact.astype(np.float32)
        unit = np.maximum(np.spacing(np.abs(nearest)).astype(np.float64), 2.0**-149)
        off = np.abs(found.astype(np.float64) - exact) / unit
        same = (found == nearest) | (np.isnan(found) & np.isnan(nearest))
    finite = np.isfinite(off)
    return np.where(finite, off, np.where(same, 0.0, np.inf))
