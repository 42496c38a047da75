"""Encodes TMA tensor maps through the driver and caches them by layout and address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import define, evolve, field

from argus.runtime.cuda.arguments import Array, TensorLayout
from argus.runtime.cuda.driver import Driver

_TYPES = {"bf16": "BFLOAT16", "f16": "FLOAT16", "f32": "FLOAT32", "i32": "INT32", "e4m3": "UINT8"}
_BYTES = {"bf16": 2, "f16": 2, "f32": 4, "i32": 4, "e4m3": 1}
_CHUNK = 16
_MOST = 1024


@define
class TensorMaps:
    """The cached tensor maps of one kernel: a launch encodes maps only for tensors that are not in the cache."""

    driver: Driver
    cached: dict[tuple[object, ...], Any] = field(factory=dict[tuple[object, ...], Any], init=False)

    def of(self, made: Mapping[str, Any], place: TensorLayout, tensor: Array) -> Any:  # noqa: ANN401 reason: untyped
        """The tensor map of a tensor. Raises ArgusError (E405) for a tensor without the expected layout."""
        if made.get("free"):
            place = evolve(place, stride_multiple=_CHUNK // _BYTES[made["dtype"]])
        place = place.of(tensor)
        key = (place, tuple(made["box"]), made["swizzle"], made["dtype"], tensor.data_ptr())
        found = self.cached.get(key)
        if found is None:
            if len(self.cached) >= _MOST:
                self.cached.clear()
            found = self.cached[key] = _encode(self.driver, made, place, tensor)
        return found


def _encode(driver: Driver, made: Mapping[str, Any], place: TensorLayout, tensor: Array) -> Any:  # noqa: ANN401 reason: untyped
    """A new tensor map; the driver takes extents and boxes from the fastest-varying axis to the slowest."""
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
