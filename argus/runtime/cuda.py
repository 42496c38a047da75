"""Launches of built CUDA kernels through the driver. The one file that loads it.

A launch takes tensors by address and shape (anything with `data_ptr`, `shape` and `stride`, such as torch's), encodes
the tensor maps that the kernel wants, and checks the conditions that its proof assumed.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

from attrs import frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.runtime.expressions import value_of

try:
    # Only machines with a GPU of NVIDIA's have it; it has no types.
    driver: Any = import_module("cuda.bindings.driver")
except ImportError:
    driver = None

_TYPES = {"bf16": "BFLOAT16", "f16": "FLOAT16", "f32": "FLOAT32", "i32": "INT32", "e4m3": "UINT8"}
_BYTES = {"bf16": 2, "f16": 2, "f32": 4, "i32": 4, "e4m3": 1}


class Array(Protocol):
    """A tensor on the device."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def data_ptr(self) -> int: ...
    def stride(self) -> tuple[int, ...]: ...


@frozen
class Loaded:
    """A kernel on the device: its description (the data of NAME.json) and its function."""

    name: str
    launch: Mapping[str, Any]
    function: Any

    def bind(self, tensors: Mapping[str, Array], sizes: Mapping[str, int], stream: int = 0) -> Callable[[], None]:
        """A function that launches the kernel on these tensors, by name, with these sizes.

        Raises ArgusError (E405) if a condition of the launch does not hold.
        """
        for check in self.launch["checks"]:
            if not value_of(check["condition"], sizes):
                message = f"`{self.name}` cannot be launched: {check['condition']} does not hold ({check['why']})"
                facts = tuple((name, str(value)) for name, value in sizes.items())
                raise ArgusError(Diagnostic("E405", "error", message, facts=facts, help="choose other sizes"))
        maps = [_encoded(each, tensors[each["tensor"]], sizes) for each in self.launch["maps"]]
        numbers = [ctypes.c_int(sizes[argument["name"]]) for argument in self.launch["arguments"]]
        places = [*(made.getPtr() for made in maps), *map(ctypes.addressof, numbers)]
        pointers = (ctypes.c_void_p * len(places))(*places)
        grid = [int(value_of(extent, sizes)) for extent in self.launch["grid"]]
        grid += [1] * (3 - len(grid))
        shape = (*grid, self.launch["threads"], 1, 1, self.launch["shared_bytes"])
        return partial(_launched, self.function, shape, stream, pointers, (maps, numbers))


def _launched(function: object, shape: tuple[int, ...], stream: int, pointers: object, _alive: object) -> None:
    """One launch; `_alive` are the arguments that `pointers` points to."""
    _done(driver.cuLaunchKernel(function, *shape, stream, ctypes.addressof(cast("ctypes.c_void_p", pointers)), 0))


def load(description: Path) -> Loaded:
    """Load NAME.json and NAME.cubin beside it into the current context.

    Raises ArgusError: E405 without a driver, or if the driver refuses.
    """
    if driver is None:
        message = "no CUDA driver: `cuda.bindings.driver` cannot be imported"
        raise ArgusError(Diagnostic("E405", "error", message, help="pip install 'argus[sm90a]' on a machine with one"))
    data = json.loads(description.read_text(encoding="utf-8"))
    launch = data["launch"]
    module = _done(driver.cuModuleLoadData(description.with_suffix(".cubin").read_bytes()))
    function = _done(driver.cuModuleGetFunction(module, launch["symbol"].encode()))
    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    _done(driver.cuFuncSetAttribute(function, attribute, launch["shared_bytes"]))
    return Loaded(data["kernel"], launch, function)


def _encoded(made: Mapping[str, Any], tensor: Array, sizes: Mapping[str, int]) -> Any:  # noqa: ANN401 reason: untyped
    """A tensor map; extents and boxes run from the fastest axis."""
    size = _BYTES[made["dtype"]]
    shape = [value_of(extent, sizes) for extent in made["shape"]]
    strides = [value_of(stride, sizes) * size for stride in made["strides"]]
    if list(tensor.shape) != shape or [stride * size for stride in tensor.stride()] != strides:
        message = f"`{made['tensor']}` has the shape {tuple(tensor.shape)}, expected {tuple(shape)}, row-major"
        raise ArgusError(Diagnostic("E405", "error", message, help="pass a contiguous tensor of this shape"))
    wide, narrow = driver.cuuint64_t, driver.cuuint32_t
    kinds = driver.CUtensorMapSwizzle
    swizzle = getattr(kinds, f"CU_TENSOR_MAP_SWIZZLE_{made['swizzle']}B" if made["swizzle"] else _NO_SWIZZLE)
    return _done(
        driver.cuTensorMapEncodeTiled(
            getattr(driver.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{_TYPES[made['dtype']]}"),
            len(shape),
            tensor.data_ptr(),
            [wide(extent) for extent in reversed(shape)],
            [wide(stride) for stride in reversed(strides[:-1])],
            [narrow(extent) for extent in reversed(made["box"])],
            [narrow(1) for _ in shape],
            driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            swizzle,
            driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    )


_NO_SWIZZLE = "CU_TENSOR_MAP_SWIZZLE_NONE"


def _done(result: tuple[Any, ...]) -> Any:  # noqa: ANN401 reason: untyped
    """What a call of the driver gives. Raises ArgusError (E405) with its status if it failed."""
    status, *values = result
    if status != driver.CUresult.CUDA_SUCCESS:
        message = f"the CUDA driver answered {status.name}"
        raise ArgusError(
            Diagnostic("E405", "error", message, help="run it under compute-sanitizer to see which access")
        )
    return values[0] if len(values) == 1 else values
