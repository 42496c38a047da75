"""Promises on data that the GPU looks at itself, so that a launch waits for nothing and may be captured in a graph.

A guard is a small kernel ahead of the launch in its stream; what it finds lies in host memory that the GPU writes, and
is told at the next launch or synchronisation. "stop" ends everything on the GPU before the kernel runs on integers that
its proof does not cover; the context is of no use afterwards, as after any fault. "tell" lets the kernel run.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Literal

from attrs import define, field, frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.runtime.cuda.driver import Driver, beside_capture

Promises = Literal["fetch", "stop", "tell"]
_THREADS, _MOST_BLOCKS = 256, 1024
_MOST = 2**32 - 2
_PORTABLE, _MAPPED = 1, 2


@frozen
class Looked:
    """What a guard looks at. shape: of the tensor, at the sizes of a launch."""

    guard: str
    tensor: str
    condition: str
    shape: tuple[int, ...]


@define
class Guards:
    """The guards of one kernel. functions: by entry point."""

    driver: Driver
    functions: Mapping[str, object]
    _told: dict[str, int] = field(factory=dict[str, int], init=False)
    _looked: dict[str, Looked] = field(factory=dict[str, Looked], init=False)

    def prepared(self, looked: Looked) -> tuple[tuple[int, ...], int]:
        """The extents of the guard's grid and blocks, with no shared memory, and the address of the word it tells in.

        Raises ArgusError: E405 for a kernel without this guard and for tensors of 2**32 elements, E408.
        """
        count = prod(looked.shape)
        if looked.guard not in self.functions or count > _MOST:
            why = f"has {count} elements" if looked.guard in self.functions else "has no guard in this code"
            message = f"`{looked.tensor}`, of which something is promised, {why}"
            raise ArgusError(Diagnostic("E405", "error", message, help="build the kernel again, or check on the host"))
        if looked.guard not in self._told:
            self._told[looked.guard] = self._word()
        self._looked[looked.guard] = looked
        blocks = max(1, min(_MOST_BLOCKS, -(-count // _THREADS)))
        return (blocks, 1, 1, _THREADS, 1, 1, 0), self.driver.call(
            "cuMemHostGetDevicePointer", self._told[looked.guard], 0
        )

    def _word(self) -> int:
        with beside_capture(self.driver):
            place = int(self.driver.call("cuMemHostAlloc", 8, _PORTABLE | _MAPPED))
        ctypes.c_uint64.from_address(place).value = 0
        return place

    def launched(self, launches: Sequence[Callable[[], None]]) -> None:
        """Launch the guards and the kernel. Raises ArgusError (E402) if an earlier guard has found a broken promise."""
        self.check()
        try:
            for launch in launches:
                launch()
        except ArgusError:
            self.check()
            raise

    def check(self) -> None:
        """Raises ArgusError (E402) with what a guard has told, once."""
        for guard, place in self._told.items():
            word = ctypes.c_uint64.from_address(place)
            if word.value:
                told, word.value = word.value, 0
                raise self._broken(self._looked[guard], (told >> 32) - 1, ctypes.c_int32(told & 0xFFFF_FFFF).value)

    @staticmethod
    def _broken(looked: Looked, place: int, value: int) -> ArgusError:
        element = (
            f"{looked.tensor}[{place}]" if len(looked.shape) == 1 else f"element {place} of {looked.tensor} by rows"
        )
        message = f"`{looked.condition}` is promised of `{looked.tensor}`, a guard on the GPU found {element} = {value}"
        facts = ((element, str(value)),)
        return ArgusError(Diagnostic("E402", "error", message, facts=facts, help="pass integers that keep the promise"))
