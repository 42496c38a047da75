"""Tensor maps: what the copy engine knows of a tensor, encoded by the driver and kept by shape and address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import define, evolve, field

from argus.runtime.cuda.arguments import Array, Place
from argus.runtime.cuda.driver import Driver

_TYPES = {"bf16": "BFLOAT16", "f16": "FLOAT16", "f32": "FLOAT32", "i32": "INT32", "e4m3": "UINT8"}
_BYTES = {"bf16": 2, "f16": 2, "f32": 4, "i32": 4, "e4m3": 1}
_CHUNK = 16
_MOST = 1024


@define
class TensorMaps:
    """Those of one kernel. A launch on a tensor that was seen before, beside others that are new, encodes but those."""

    driver: Driver
    kept: dict[tuple[object, ...], Any] = field(factory=dict[tuple[object, ...], Any], init=False)

    def of(self, made: Mapping[str, Any], place: Place, tensor: Array) -> Any:  # noqa: ANN401 reason: untyped
        """Raises ArgusError (E405) for a tensor that does not lie as the kernel expects."""
        if made.get("free"):
            place = evolve(place, whole=_CHUNK // _BYTES[made["dtype"]])
        place = place.of(tensor)
        key = (place, tuple(made["box"]), made["swizzle"], made["dtype"], tensor.data_ptr())
        found = self.kept.get(key)
        if found is None:
            if len(self.kept) >= _MOST:
                self.kept.clear()
            found = self.kept[key] = _encoded(self.driver, made, place, tensor)
        return found


def _encoded(driver: Driver, made: Mapping[str, Any], place: Place, tensor: Array) -> Any:  # noqa: ANN401 reason: untyped
    """A tensor map; extents and boxes run from the fastest axis."""
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
