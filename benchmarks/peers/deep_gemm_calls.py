"""Calls of DeepGEMM's kernels on torch tensors, of the code objects that deep_gemm.py builds."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from attrs import frozen

from .deep_gemm import (  # noqa: TID252 reason: scripts and tests name the package differently
    BLOCK,
    E4M3,
    FOLDER,
    GROUP_ROWS,
    PROCESSORS,
    Product,
    Tiles,
    swizzle_of,
)

_PRODUCERS = 128
"""Threads of the warpgroup that loads."""


@frozen
class Loaded:
    """A kernel on the device."""

    product: Product
    tiles: Tiles
    function: object
    driver: Any


@frozen(eq=False)
class Call:
    """A call with all but the result's values fixed. out: the result, of shape (m, n)."""

    out: Any
    _launch: Callable[[], None]

    def __call__(self) -> Any:  # noqa: ANN401 reason: untyped
        self._launch()
        return self.out


def load_if_built(product: Product, folder: Path = FOLDER) -> Loaded | None:
    """The kernel of a product; None if it is not built.

    Raises:
        ArgusError: the driver refuses it.
    """
    place = folder / f"{product.name}.json"
    if not place.is_file():
        return None
    about = json.loads(place.read_text("utf-8"))
    held = about["tiles"]
    tiles = Tiles(held["m"], held["n"], (held["along"][0], held["along"][1]), held["stages"], held["memory"])
    driver = import_module("argus.runtime.cuda.driver").find_driver()
    code = driver.load(place.with_suffix(".cubin").read_bytes(), about["symbol"], tiles.memory)
    return Loaded(product, tiles, code.function, driver)


def padded_rows(torch: Any, counts: Sequence[int]) -> tuple[Any, Any]:  # noqa: ANN401 reason: untyped
    """Where rows of experts go, as DeepGEMM stores them: the place of each row, and the expert of each place, or -1."""
    places: list[Any] = []
    experts: list[Any] = []
    first = 0
    for e, count in enumerate(counts):
        held = -(-count // GROUP_ROWS) * GROUP_ROWS
        places.append(torch.arange(first, first + count, device="cuda"))
        here = torch.full((held,), -1, device="cuda", dtype=torch.int32)
        here[:count] = e
        experts.append(here)
        first += held
    return torch.cat(places), torch.cat(experts)


def call(
    kernel: Loaded,
    torch: Any,  # noqa: ANN401 reason: untyped
    a: Any,  # noqa: ANN401 reason: as above
    b: Any,  # noqa: ANN401 reason: as above
    scales: tuple[Any, Any] | None = None,
    experts: Any = None,  # noqa: ANN401 reason: as above
) -> Call:
    """The launch on torch's current stream of C = A @ B^T, in bf16.

    scales: of e4m3, of A of shape (k / 128, m) with m a multiple of 4, of B of shape (n / 128, k / 128), or one such
    matrix an expert. experts: of each row, see `padded_rows`.

    Raises:
        ValueError: operands that this kernel was not compiled for.
    """
    product, tiles = kernel.product, kernel.tiles
    m, n, k = product.m, product.n, product.k
    if tuple(a.shape) != (m, k) or b.numel() != max(1, product.experts) * n * k or m % 4:
        raise ValueError(f"operands of shapes {tuple(a.shape)} and {tuple(b.shape)} for {product}")
    if (scales is None) != (product.dtype != E4M3) or (experts is None) != (product.experts == 0):
        raise ValueError(f"{product} has scales if its type is e4m3, and experts if it has several matrices")
    out = torch.empty((m, n), device="cuda", dtype=torch.bfloat16)
    wide, deep, columns = swizzle_of(2 * tiles.n), 128 // product.size, b.view(-1, k)
    maps = [
        _map(kernel, a, (tiles.m, deep), 128),
        _map(kernel, columns, (tiles.n, deep), 128),
        _map(kernel, out, (tiles.m, wide // 2), wide),
    ]
    numbers: list[Any] = [ctypes.c_void_p(0 if experts is None else experts.data_ptr())]
    numbers += [ctypes.c_uint32(extent) for extent in (m, n, k)]
    if scales is not None:
        of_a, of_b = scales
        if tuple(of_a.shape) != (-(-k // BLOCK), m) or not of_b.is_contiguous():
            raise ValueError(f"scales of shapes {tuple(of_a.shape)} and {tuple(of_b.shape)} for {product}")
        maps.append(_map(kernel, of_a, (1, tiles.m), 0))
        numbers.insert(0, ctypes.c_void_p(of_b.data_ptr()))
    alive = (a, b, out, scales, experts)
    stream = torch.cuda.current_stream().cuda_stream
    return Call(out, _launch(kernel, numbers, maps, stream, alive))


def _map(kernel: Loaded, tensor: Any, box: tuple[int, int], swizzle: int) -> Any:  # noqa: ANN401 reason: untyped
    """A tensor map of a matrix, encoded as DeepGEMM does. box: rows and columns. swizzle: in bytes."""
    raw = kernel.driver.raw
    kind = {1: "UINT8", 2: "BFLOAT16", 4: "FLOAT32"}[tensor.element_size()]
    wide, narrow = raw.cuuint64_t, raw.cuuint32_t
    span = f"{swizzle}B" if swizzle > 16 else "NONE"
    return kernel.driver.call(
        "cuTensorMapEncodeTiled",
        getattr(raw.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{kind}"),
        2,
        tensor.data_ptr(),
        [wide(tensor.shape[1]), wide(tensor.shape[0])],
        [wide(tensor.stride(0) * tensor.element_size())],
        [narrow(box[1]), narrow(box[0])],
        [narrow(1), narrow(1)],
        raw.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        getattr(raw.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{span}"),
        raw.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        raw.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )


def _launch(kernel: Loaded, numbers: list[Any], maps: list[Any], stream: int, alive: object) -> Callable[[], None]:
    raw, tiles = kernel.driver.raw, kernel.tiles
    made = raw.CUlaunchConfig()
    made.gridDimX, made.gridDimY, made.gridDimZ = PROCESSORS, 1, 1
    made.blockDimX, made.blockDimY, made.blockDimZ = _PRODUCERS + tiles.threads, 1, 1
    made.sharedMemBytes, made.hStream = tiles.memory, stream
    if tiles.along != (1, 1):
        cluster = raw.CUlaunchAttribute()
        cluster.id = raw.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        cluster.value.clusterDim.x = tiles.along[0] * tiles.along[1]
        cluster.value.clusterDim.y = cluster.value.clusterDim.z = 1
        made.attrs, made.numAttrs = [cluster], 1
    places = [*map(ctypes.addressof, numbers), *(each.getPtr() for each in maps)]
    pointers = (ctypes.c_void_p * len(places))(*places)
    address = ctypes.addressof(cast("ctypes.c_void_p", pointers))

    def launch(_alive: object = (alive, numbers, maps, pointers)) -> None:
        kernel.driver.call("cuLaunchKernelEx", made, kernel.function, address, 0)

    return launch
