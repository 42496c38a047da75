"""Guards: checks of data contracts on the GPU itself, so that a launch need not wait and can be captured in a graph.

A guard is a small kernel ahead of the launch in its stream. It writes what it finds to mapped host memory, and the next
launch or synchronisation reports it. "stop" traps before the kernel runs on integers that its proof does not cover; the
context is then unusable, as after any fault, and ROCm may end the process. "tell" lets the kernel run.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Literal

from attrs import define, field, frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.emit.guards import MOST_BLOCKS, THREADS
from argus.runtime.gpu.driver import GpuDriver
from argus.runtime.gpu.failures import explain_by

Promises = Literal["fetch", "stop", "tell"]
_MOST = 2**32 - 2


@frozen
class GuardedTensor:
    """A tensor that a guard checks. shape: at the sizes of a launch."""

    guard: str
    tensor: str
    condition: str
    shape: tuple[int, ...]


@define
class Guards:
    """The guards of one kernel. functions: the guards' device functions by entry point."""

    driver: GpuDriver
    functions: Mapping[str, object]
    _words: dict[str, int] = field(factory=dict[str, int], init=False)
    _tensors: dict[str, GuardedTensor] = field(factory=dict[str, GuardedTensor], init=False)

    def __attrs_post_init__(self) -> None:
        explain_by(self.driver, self.check)

    def prepare(self, guarded: GuardedTensor) -> tuple[tuple[int, ...], int]:
        """The guard's launch shape (grid, block, 0 bytes of shared memory) and the device address of its report word.

        Raises ArgusError: E405 for a kernel without this guard and for tensors of 2**32 elements or more, E408.
        """
        count = prod(guarded.shape)
        if guarded.guard not in self.functions or count > _MOST:
            why = f"has {count} elements" if guarded.guard in self.functions else "has no guard in this code"
            message = f"`{guarded.tensor}`, which has a data contract, {why}"
            raise ArgusError(Diagnostic("E405", "error", message, help="build the kernel again, or check on the host"))
        if guarded.guard not in self._words:
            self._words[guarded.guard] = self._word()
        self._tensors[guarded.guard] = guarded
        blocks = max(1, min(MOST_BLOCKS, -(-count // THREADS)))
        return (blocks, 1, 1, THREADS, 1, 1, 0), self.driver.device_address(self._words[guarded.guard])

    def _word(self) -> int:
        place = self.driver.mapped_host_memory(8)
        ctypes.c_uint64.from_address(place).value = 0
        return place

    def launch(self, launches: Sequence[Callable[[], None]]) -> None:
        """Launch the guards and the kernel. Raises ArgusError (E402) if an earlier guard found a violated contract."""
        self.check()
        for launch in launches:
            launch()

    def check(self) -> None:
        """Raises ArgusError (E402) for a violation that a guard has reported, once per report."""
        for guard, address in self._words.items():
            word = ctypes.c_uint64.from_address(address)
            if word.value:
                report, word.value = word.value, 0
                place, value = (report >> 32) - 1, ctypes.c_int32(report & 0xFFFF_FFFF).value
                raise self._violation(self._tensors[guard], place, value)

    @staticmethod
    def _violation(guarded: GuardedTensor, place: int, value: int) -> ArgusError:
        element = (
            f"{guarded.tensor}[{place}]" if len(guarded.shape) == 1 else f"element {place} of {guarded.tensor} by rows"
        )
        message = f"`{guarded.tensor}` must satisfy `{guarded.condition}`, a guard on the GPU found {element} = {value}"
        facts = ((element, str(value)),)
        help_ = "pass integers that satisfy the contract"
        return ArgusError(Diagnostic("E402", "error", message, facts=facts, help=help_))
