"""Checks a launch's tensor arguments: layout in memory, and contracts on the integers in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt
from attrs import evolve, frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.runtime.expressions import first_violation
from argus.runtime.gpu.driver import GpuDriver


class Array(Protocol):
    """A tensor on the device."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def data_ptr(self) -> int: ...
    def stride(self) -> tuple[int, ...]: ...


@frozen
class TensorLayout:
    """The layout that a kernel expects of a tensor at some sizes: shape, strides in elements, alignment in bytes.

    stride_multiple: for a tensor that only tensor maps read, which may have other strides, the number of elements that
    each stride must be a multiple of; 0 where the strides must be exactly these.
    """

    tensor: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    align: int
    stride_multiple: int = 0

    def check(self, tensor: Array) -> None:
        """Raises ArgusError (E405) unless the tensor has this layout; strides of axes of extent 1 do not matter."""
        if tuple(tensor.shape) != self.shape or not self._accepts(self._strides_of(tensor)):
            message = f"`{self.tensor}` has the shape {tuple(tensor.shape)}, expected {self.shape}, row-major"
            raise ArgusError(Diagnostic("E405", "error", message, help="pass a contiguous tensor of this shape"))
        if tensor.data_ptr() % self.align:
            message = f"`{self.tensor}` is not aligned to {self.align} bytes"
            raise ArgusError(Diagnostic("E405", "error", message, help="pass a copy of it"))

    def of(self, tensor: Array) -> TensorLayout:
        """The layout of a tensor. Raises ArgusError (E405) like `check`."""
        self.check(tensor)
        return evolve(self, strides=self._strides_of(tensor)) if self.stride_multiple else self

    def _strides_of(self, tensor: Array) -> tuple[int, ...]:
        """The tensor's strides, with the expected ones for axes of extent 1, whose strides are meaningless."""
        strides = zip(self.shape, tensor.stride(), self.strides, strict=False)
        return tuple(found if size > 1 else expected for size, found, expected in strides)

    def _accepts(self, strides: tuple[int, ...]) -> bool:
        if not self.stride_multiple or strides == self.strides:
            return strides == self.strides
        return strides[-1] == 1 and all(s >= 0 and s % self.stride_multiple == 0 for s in strides[:-1])


@frozen
class Contract:
    """A condition that the proof assumes of every element of a tensor of 32-bit integers, at these sizes.

    others: the other such tensors whose elements the condition reads.
    """

    place: TensorLayout
    condition: str
    sizes: Mapping[str, int]
    guard: str = ""
    others: tuple[TensorLayout, ...] = ()

    def check_layouts(self, tensors: Mapping[str, Array]) -> None:
        """Raises ArgusError (E405) like `TensorLayout.check`."""
        for each in (self.place, *self.others):
            each.check(tensors[each.tensor])

    def check(self, driver: GpuDriver, tensors: Mapping[str, Array]) -> None:
        """Copy the tensors, given by name, to the host and check each element.

        Raises ArgusError: E405 like `TensorLayout.check`, E402 with the first element that violates the contract.
        """
        self.check_layouts(tensors)
        fetched = {each.tensor: _fetched(driver, each, tensors) for each in (self.place, *self.others)}
        held = fetched.pop(self.place.tensor)
        at = first_violation(self.condition, self.place.tensor, held, self.sizes, fetched)
        if at is not None:
            element = f"{self.place.tensor}[{', '.join(map(str, at))}]"
            message = f"`{self.place.tensor}` must satisfy `{self.condition}`, found {element} = {held[at]}"
            facts = ((element, str(held[at])),)
            raise ArgusError(
                Diagnostic("E402", "error", message, facts=facts, help="pass integers that satisfy the contract")
            )


def _fetched(driver: GpuDriver, place: TensorLayout, tensors: Mapping[str, Array]) -> npt.NDArray[np.int64]:
    """The integers of a tensor, on the host."""
    held = np.empty(place.shape, np.int32)
    if held.size:
        driver.copy_out(held.ctypes.data, tensors[place.tensor].data_ptr(), held.nbytes)
    return held.astype(np.int64)
