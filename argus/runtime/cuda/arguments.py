"""Where a launch expects its tensors, and what it presumes of the integers in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from attrs import evolve, frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.runtime.cuda.driver import Driver
from argus.runtime.expressions import unkept


class Array(Protocol):
    """A tensor on the device."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def data_ptr(self) -> int: ...
    def stride(self) -> tuple[int, ...]: ...


@frozen
class Place:
    """What a kernel expects of a tensor at some sizes: shape, strides in elements, alignment in bytes.

    whole: of a tensor that may lie with strides of its own, as it is read by tensor maps alone, the elements that those
    are multiples of; 0 for one that must lie as said.
    """

    tensor: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    align: int
    whole: int = 0

    def check(self, tensor: Array) -> None:
        """Raises ArgusError (E405) unless the tensor lies so; strides of axes of one element do not matter."""
        if tuple(tensor.shape) != self.shape or not self._takes(self._strides_of(tensor)):
            message = f"`{self.tensor}` has the shape {tuple(tensor.shape)}, expected {self.shape}, row-major"
            raise ArgusError(Diagnostic("E405", "error", message, help="pass a contiguous tensor of this shape"))
        if tensor.data_ptr() % self.align:
            message = f"`{self.tensor}` does not begin at a multiple of {self.align} bytes"
            raise ArgusError(Diagnostic("E405", "error", message, help="pass a copy of it"))

    def of(self, tensor: Array) -> Place:
        """Where a tensor lies. Raises ArgusError (E405) as `check` does."""
        self.check(tensor)
        return evolve(self, strides=self._strides_of(tensor)) if self.whole else self

    def _strides_of(self, tensor: Array) -> tuple[int, ...]:
        """The tensor's strides; of axes of one element, which have none, those expected."""
        strides = zip(self.shape, tensor.stride(), self.strides, strict=False)
        return tuple(found if size > 1 else held for size, found, held in strides)

    def _takes(self, strides: tuple[int, ...]) -> bool:
        if not self.whole or strides == self.strides:
            return strides == self.strides
        return strides[-1] == 1 and all(stride >= 0 and stride % self.whole == 0 for stride in strides[:-1])


@frozen
class Contract:
    """What the proof presumes of every element of a tensor of 32-bit integers, over these sizes."""

    place: Place
    condition: str
    sizes: Mapping[str, int]
    guard: str = ""

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
