"""Caches the TMA tensor maps of a kernel by layout and address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import define, evolve, field

from argus.core.dtype import DTYPES
from argus.emit.artifact import ended_map
from argus.runtime.gpu.arguments import Array, TensorLayout
from argus.runtime.gpu.driver import GpuDriver, TensorMapLayout

_BYTES = {dtype.name: dtype.bits // 8 for dtype in DTYPES}
_CHUNK = 16
_MOST = 1024


@define
class TensorMaps:
    """The cached tensor maps of one kernel: a launch encodes maps only for tensors that are not in the cache."""

    driver: GpuDriver
    cached: dict[tuple[object, ...], Any] = field(factory=dict[tuple[object, ...], Any], init=False)

    def of(self, made: Mapping[str, Any], place: TensorLayout, tensor: Array) -> Any:  # noqa: ANN401 reason: untyped
        """The tensor map of a tensor. Raises ArgusError (E405) for one without the expected layout."""
        if made.get("free"):
            place = evolve(place, stride_multiple=_CHUNK // _BYTES[made["dtype"]])
        place = place.of(tensor)
        ended = bool(made.get("ended"))
        key = (place, tuple(made["box"]), made["swizzle"], made["dtype"], tensor.data_ptr(), ended)
        found = self.cached.get(key)
        if found is None:
            if len(self.cached) >= _MOST:
                self.cached.clear()
            size = _BYTES[made["dtype"]]
            shape, strides = place.shape, place.strides
            if ended:
                shape, strides = ended_map(shape, strides, size)
            layout = TensorMapLayout(
                made["dtype"],
                shape,
                tuple(stride * size for stride in strides[:-1]),
                tuple(made["box"]),
                made["swizzle"],
            )
            found = self.cached[key] = self.driver.encode_tensor_map(layout, tensor.data_ptr())
        return found
