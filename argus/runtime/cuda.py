"""Launches of built CUDA kernels.

A launch takes tensors by address and shape (anything with `data_ptr`, `shape` and `stride`, such as torch's), encodes
the tensor maps that the kernel wants, and checks the conditions that its proof assumed.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
from attrs import frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.runtime.driver import Driver, installed, refusal
from argus.runtime.expressions import unkept, value_of

_TYPES = {"bf16": "BFLOAT16", "f16": "FLOAT16", "f32": "FLOAT32", "i32": "INT32", "e4m3": "UINT8"}
_MOST_BLOCKS = (2**31 - 1, 65_535, 65_535)
_BYTES = {"bf16": 2, "f16": 2, "f32": 4, "i32": 4, "e4m3": 1}


class Array(Protocol):
    """A tensor on the device."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def data_ptr(self) -> int: ...
    def stride(self) -> tuple[int, ...]: ...


@frozen
class Place:
    """What a kernel expects of a tensor at some sizes: shape, strides in elements, alignment in bytes."""

    tensor: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    align: int

    def check(self, tensor: Array) -> None:
        """Raises ArgusError (E405) unless the tensor lies so; strides of axes of one element do not matter."""
        strides = zip(self.shape, tensor.stride(), self.strides, strict=False)
        if tuple(tensor.shape) != self.shape or any(size > 1 and found != held for size, found, held in strides):
            message = f"`{self.tensor}` has the shape {tuple(tensor.shape)}, expected {self.shape}, row-major"
            raise ArgusError(Diagnostic("E405", "error", message, help="pass a contiguous tensor of this shape"))
        if tensor.data_ptr() % self.align:
            message = f"`{self.tensor}` does not begin at a multiple of {self.align} bytes"
            raise ArgusError(Diagnostic("E405", "error", message, help="pass a copy of it"))


@frozen
class Contract:
    """What the proof presumes of every element of a tensor of 32-bit integers, over these sizes."""

    place: Place
    condition: str
    sizes: Mapping[str, int]

    def check(self, driver: Driver, tensor: Array) -> None:
        """Fetch the tensor and look at each element. Raises ArgusError: E405 as `Place.check` does, E402 with the first
        that breaks the contract.
        """
        self.place.check(tensor)
        held = np.empty(self.place.shape, np.int32)
        if held.size:
            driver.call("cuMemcpyDtoH", held.ctypes.data, tensor.data_ptr(), held.nbytes)
        at = unkept(self.condition, self.place.tensor, held.astype(np.int64), self.sizes)
        if at is not None:
            element = f"{self.place.tensor}[{', '.join(map(str, at))}]"
            message = f"`{self.condition}` is promised of `{self.place.tensor}`, found {element} = {held[at]}"
            facts = ((element, str(held[at])),)
            raise ArgusError(
                Diagnostic("E402", "error", message, facts=facts, help="pass integers that keep the promise")
            )


@frozen
class Prepared:
    """A kernel at some sizes: its conditions hold, its grid is known. maps and pointers: by tensor, in order."""

    driver: Driver
    function: object
    shape: tuple[int, ...]
    maps: tuple[tuple[Place, Mapping[str, Any]], ...]
    values: tuple[Place | int, ...]
    contracts: tuple[Contract, ...] = ()
    early: bool = False

    def bind(self, tensors: Mapping[str, Array], stream: int = 0) -> Callable[[], None]:
        """A function that launches the kernel on these tensors, by name; the tensors must outlive its launches.

        A grid without blocks is no launch.
        Raises ArgusError: E405 for a tensor that does not lie as the kernel expects, E402 for integers that break a
        contract.
        """
        if 0 in self.shape[:3]:
            return _nothing
        for contract in self.contracts:
            contract.check(self.driver, tensors[contract.place.tensor])
        maps = [_encoded(self.driver, made, place, tensors[place.tensor]) for place, made in self.maps]
        numbers = [_argument(value, tensors) for value in self.values]
        places = [*(made.getPtr() for made in maps), *map(ctypes.addressof, numbers)]
        pointers = (ctypes.c_void_p * len(places))(*places)
        address = ctypes.addressof(cast("ctypes.c_void_p", pointers))
        given = (_configuration(self.driver.raw, self.shape, stream, early=self.early), self.function, address, 0)
        return partial(_launched, self.driver.raw, given, (maps, numbers, pointers))


def _nothing() -> None:
    """The launch of no block."""


def _launched(raw: Any, given: tuple[object, ...], _alive: object) -> None:  # noqa: ANN401 reason: untyped
    """One launch, by the shortest way; `_alive` is what `given` points to."""
    (status,) = raw.cuLaunchKernelEx(*given)
    if status != raw.CUresult.CUDA_SUCCESS:
        raise refusal(status.name, "cuLaunchKernelEx")


def _configuration(raw: Any, shape: tuple[int, ...], stream: int, *, early: bool) -> Any:  # noqa: ANN401 reason: untyped
    """How a launch is made. shape: extents of the grid and of a block, and bytes of shared memory."""
    made = raw.CUlaunchConfig()
    made.gridDimX, made.gridDimY, made.gridDimZ, made.blockDimX, made.blockDimY, made.blockDimZ = shape[:6]
    made.sharedMemBytes, made.hStream = shape[6], stream
    if early:
        overlap = raw.CUlaunchAttribute()
        overlap.id = raw.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        overlap.value.programmaticStreamSerializationAllowed = 1
        made.attrs, made.numAttrs = [overlap], 1
    return made


def _argument(value: Place | int, tensors: Mapping[str, Array]) -> ctypes.c_void_p | ctypes.c_int:
    if isinstance(value, int):
        return ctypes.c_int(value)
    value.check(tensors[value.tensor])
    return ctypes.c_void_p(tensors[value.tensor].data_ptr())


@frozen
class Loaded:
    """A kernel on the device: its description (the data of NAME.json) and its function."""

    name: str
    launch: Mapping[str, Any]
    function: object
    driver: Driver

    def bind(self, tensors: Mapping[str, Array], sizes: Mapping[str, int], stream: int = 0) -> Callable[[], None]:
        """A function that launches the kernel on these tensors, by name, with these sizes.

        Raises ArgusError (E405) if a condition of the launch does not hold.
        """
        return self.prepare(sizes).bind(tensors, stream)

    def prepare(self, sizes: Mapping[str, int]) -> Prepared:
        """The kernel at these sizes. Raises ArgusError (E405) if a condition of the launch does not hold."""
        for check in self.launch["checks"]:
            if not value_of(check["condition"], sizes):
                message = f"`{self.name}` cannot be launched: {check['condition']} does not hold ({check['why']})"
                facts = tuple((name, str(value)) for name, value in sizes.items())
                raise ArgusError(Diagnostic("E405", "error", message, facts=facts, help="choose other sizes"))
        grid = [int(value_of(extent, sizes)) for extent in self.launch["grid"]]
        grid += [1] * (3 - len(grid))
        if any(extent > most for extent, most in zip(grid, _MOST_BLOCKS, strict=True)):
            message = f"`{self.name}` cannot be launched: its grid is {tuple(grid)}, expected at most {_MOST_BLOCKS}"
            raise ArgusError(Diagnostic("E405", "error", message, help="choose smaller sizes"))
        shape = (*grid, self.launch["threads"], 1, 1, self.launch["shared_bytes"])
        maps = tuple((_place(made, made["tensor"], sizes), made) for made in self.launch["maps"])
        values = tuple(_value(argument, sizes) for argument in self.launch["arguments"])
        contracts = tuple(
            Contract(_place(each, each["tensor"], sizes), each["condition"], dict(sizes))
            for each in self.launch.get("contracts", ())
        )
        early = bool(self.launch.get("early"))
        return Prepared(self.driver, self.function, shape, maps, values, contracts, early)


def load(description: Path, driver: Driver | None = None) -> Loaded:
    """Load NAME.json and NAME.cubin beside it into the current context. driver: that of this machine by default.

    Raises ArgusError: E406 without a driver, E407 if the code is for another GPU, E405 if the driver refuses it.
    """
    used = installed() if driver is None else driver
    data = json.loads(description.read_text(encoding="utf-8"))
    launch = data["launch"]
    module = used.call("cuModuleLoadData", description.with_suffix(".cubin").read_bytes())
    function = used.call("cuModuleGetFunction", module, launch["symbol"].encode())
    attribute = used.raw.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    used.call("cuFuncSetAttribute", function, attribute, launch["shared_bytes"])
    return Loaded(data["kernel"], launch, function, used)


def _place(described: Mapping[str, Any], tensor: str, sizes: Mapping[str, int]) -> Place:
    """Where a tensor map or a pointer expects its tensor; a pointer's tensor is row-major."""
    shape = tuple(value_of(extent, sizes) for extent in described["shape"])
    given = described.get("strides")
    strides = _row_major(shape) if given is None else tuple(value_of(stride, sizes) for stride in given)
    return Place(tensor, shape, strides, described.get("align", 16))


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides: list[int] = []
    stride = 1
    for extent in reversed(shape):
        strides.append(stride)
        stride *= extent
    return tuple(reversed(strides))


def _value(argument: Mapping[str, Any], sizes: Mapping[str, int]) -> Place | int:
    """An argument after the tensor maps: where a pointer's tensor is expected, or a size."""
    return _place(argument, argument["name"], sizes) if argument["kind"] == "pointer" else sizes[argument["name"]]


def _encoded(driver: Driver, made: Mapping[str, Any], place: Place, tensor: Array) -> Any:  # noqa: ANN401 reason: untyped
    """A tensor map; extents and boxes run from the fastest axis."""
    place.check(tensor)
    raw, size = driver.raw, _BYTES[made["dtype"]]
    wide, narrow, kinds = raw.cuuint64_t, raw.cuuint32_t, raw.CUtensorMapSwizzle
    swizzle = f"CU_TENSOR_MAP_SWIZZLE_{made['swizzle']}B" if made["swizzle"] else "CU_TENSOR_MAP_SWIZZLE_NONE"
    return driver.call(
        "cuTensorMapEncodeTiled",
        getattr(raw.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{_TYPES[made['dtype']]}"),
        len(place.shape),
        tensor.data_ptr(),
        [wide(extent) for extent in reversed(place.shape)],
        [wide(stride * size) for stride in reversed(place.strides[:-1])],
        [narrow(extent) for extent in reversed(made["box"])],
        [narrow(1) for _ in place.shape],
        raw.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        getattr(kinds, swizzle),
        raw.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        raw.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
