"""Launches on tensors of the CPU: the tile interpreter runs the kernel, or the program, that a GPU would run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from argus.core.ir import Kernel, Program
from argus.interp.interpret import interpret, interpret_program

Array = npt.NDArray[Any]
_SIGNED = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}


def interpret_on(
    traced: Kernel | Program,
    sizes: Mapping[str, int],
    tensors: Mapping[str, Any],
    torch: Any,  # noqa: ANN401 reason: an extra
) -> None:
    """Run a kernel or a program on torch's tensors by name, into those that it writes.

    Raises ArgusError: E402 for sizes or integers that violate what it assumes, E501 for what cannot be interpreted.
    """
    arrays = {each.name: array_of(tensors[each.name], each.dtype.numpy, torch) for each in traced.parameters}
    given = {symbol.name: sizes[symbol.name] for symbol in traced.sizes}
    run = interpret_program if isinstance(traced, Program) else interpret
    found = run(traced, *arrays.values(), tags=False, given_sizes=given)  # pyright: ignore[reportArgumentType]  # as `run`
    for name, array in found.items():
        arrays[name][...] = array


def array_of(tensor: Any, dtype: np.dtype[Any], torch: Any) -> Array:  # noqa: ANN401 reason: an extra
    """A tensor's own memory as an array, of a type that torch's conversion may not know."""
    plain = tensor.detach().view(getattr(torch, _SIGNED[dtype.itemsize]))
    return plain.numpy().view(dtype)
