"""The test of one instruction: its kernel, its inputs, and the result expected by the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from argus.core.dtype import DType
from argus.core.index_text import show
from argus.core.ir import Buffer, Kernel
from argus.interp.run import run
from argus.language import Tensor, kernel, sm_90a

Array = npt.NDArray[Any]
Draw = Literal["integers", "floats", "bits"]
Determined = Literal["bits", "values", "sums"]
"""How exact a result is. bits: every bit. values: every bit, except that all NaNs are equal. sums: a sum of products,
exact for small integers, and otherwise within a rounding-error bound."""
_DRAWS: Mapping[Determined, tuple[Draw, ...]] = {
    "sums": ("integers", "floats"),
    "values": ("bits", "floats"),
    "bits": ("bits",),
}
SIZES = {"M": 100, "K": 24, "N": 1504}
"""Sizes of tensors that an access exceeds."""


@frozen
class Trial:
    """A kernel that runs one instruction, with its result in the tensor `C`. what: the instruction and its operands.

    traced: traces the kernel, when it is first asked for: there are hundreds of trials.
    """

    name: str
    family: str
    what: str
    traced: Callable[[], Kernel] = field(repr=False)
    determined: Determined = "bits"

    @cached_property
    def kernel(self) -> Kernel:
        return self.traced()

    @property
    def sizes(self) -> dict[str, int]:
        return {size.name: SIZES[size.name] for size in self.kernel.sizes}

    @property
    def inputs(self) -> tuple[Buffer, ...]:
        return tuple(buffer for buffer in self.kernel.parameters if buffer.name != "C")

    @property
    def draws(self) -> tuple[Draw, ...]:
        return _DRAWS[self.determined]


@frozen
class Expected:
    """result: the final `C`, NaN where nothing is written. scale: sums of the absolute products.

    faults: violations found by the interpreter.
    """

    result: Array
    scale: Array | None
    faults: tuple[str, ...]


def trial(
    what: str,
    family: str,
    body: Callable[..., None],
    tensors: Mapping[str, tuple[str, DType]],
    *,
    threads: int = 128,
    determined: Determined = "bits",
) -> Trial:
    """A function over tensors of these shapes, as a kernel named `what`."""
    body.__name__ = what.replace(" ", "_")
    body.__annotations__ = {name: Tensor[shape] for name, shape in tensors.items()}
    return Trial(body.__name__, family, what, kernel(target=sm_90a, threads=threads)(body).trace, determined)


def drawn(made: Trial, draw: Draw, seed: int = 0) -> dict[str, Array]:
    """Inputs by name. integers: small, so that sums are exact; floats: normal, for sums rounded to multiples of 1/256;
    bits: any bit pattern, including NaN.
    """
    random = np.random.default_rng([seed, len(draw), *made.name.encode()])
    rounded = made.determined == "sums"
    return {buffer.name: _values(buffer.dtype, _shape(buffer), draw, random, rounded) for buffer in made.inputs}


def _shape(buffer: Buffer) -> tuple[int, ...]:
    return tuple(SIZES[name] if (name := show(extent)) in SIZES else int(name) for extent in buffer.shape)


def _values(dtype: DType, shape: tuple[int, ...], draw: Draw, random: np.random.Generator, rounded: bool) -> Array:
    match draw:
        case "integers":
            return random.integers(-3, 4, shape).astype(dtype.numpy)
        case "floats":
            normal = random.standard_normal(shape)
            return (np.round(256 * normal) / 256 if rounded else normal).astype(dtype.numpy)
        case "bits":
            word = np.dtype(f"u{dtype.bits // 8}")
            return random.integers(0, 1 << dtype.bits, shape, np.uint64).astype(word).view(dtype.numpy)


def expected(made: Trial, inputs: Mapping[str, Array]) -> Expected:
    """The interpreter's result, and for sums the scale of rounding errors."""
    outcome = run(made.kernel, made.sizes, inputs)
    scale = None
    if made.determined == "sums":
        sizes = {name: np.abs(values) for name, values in inputs.items()}
        scale = run(made.kernel, made.sizes, sizes, tags=False).arrays["C"]
    faults = tuple(f"{found.code}: {found.message}" for found in outcome.violations)
    return Expected(outcome.arrays["C"], scale, faults)
