"""Small kernels that are written as text, not in the DSL: compiled, loaded and launched.

Nothing proves them. What they compute is checked by guards of the kernels that use it, or not relied on by any proof.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial
from hashlib import sha256

from attrs import define, field, frozen

from argus.emit.build import COMPILE_SECONDS
from argus.emit.cuda.nvrtc import compile_cuda
from argus.emit.hip.toolchain import compile_hip
from argus.runtime.gpu.driver import GpuDriver
from argus.runtime.gpu.find import find_driver
from argus.runtime.gpu.threads import OncePerThread
from argus.solvers.cache import default_folder


@frozen(cache_hash=True)
class TextKernel:
    """An entry point of a text. texts: the text for each target. threads: of a block. early: it waits for the launch
    before itself, so that it may begin before that has ended.
    """

    symbol: str
    texts: Callable[[str], str]
    threads: int
    early: bool = False

    def launch(self, target: str, device: int, stream: int, blocks: int, *arguments: int) -> None:
        """Launch it on the current device. arguments: addresses and 32-bit integers, in order.

        Raises ArgusError: E303 without a compiler, E406 to E409 for errors on the GPU.
        """
        _ready(self, target, device, stream, blocks, len(arguments))(arguments)


@define
class _Ready:
    """A launch whose arguments are written into the same places each time: the driver copies them."""

    places: ctypes.Array[ctypes.c_int64]
    launch: Callable[[], None]
    entered: OncePerThread
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def __call__(self, arguments: tuple[int, ...]) -> None:
        self.entered()
        with self._lock:
            self.places[:] = arguments
            self.launch()


@lru_cache(maxsize=1 << 10)
def _ready(kernel: TextKernel, target: str, device: int, stream: int, blocks: int, count: int) -> _Ready:
    places = (ctypes.c_int64 * count)()
    first = ctypes.addressof(places)
    driver, function = _loaded(kernel, target, device)
    shape = (blocks, 1, 1, kernel.threads, 1, 1, 0)
    addresses = [first + 8 * number for number in range(count)]
    launch = driver.launcher(function, shape, addresses, places, stream, early=kernel.early)
    return _Ready(places, launch, OncePerThread(partial(driver.enter, driver.context_of(device))))


@cache
def _loaded(kernel: TextKernel, target: str, device: int) -> tuple[GpuDriver, object]:
    """The driver, and the kernel in the context of a device, which is current afterwards."""
    driver = find_driver(target)
    driver.enter(driver.context_of(device))
    return driver, driver.load(_COMPILED[target](kernel), kernel.symbol, 0).function


def clear_cache() -> None:
    """Drop what is loaded."""
    _ready.cache_clear()
    _loaded.cache_clear()


def _cuda(kernel: TextKernel) -> bytes:
    return compile_cuda(kernel.texts("sm_90a"), kernel.symbol).cubin


def _hip(kernel: TextKernel) -> bytes:
    """The code object, compiled now unless it is cached."""
    text = kernel.texts("gfx942")
    folder = default_folder() / "kernels" / f"text-{sha256(text.encode()).hexdigest()[:20]}"
    made = folder / f"{kernel.symbol}.hsaco"
    return (made if made.is_file() else compile_hip(text, kernel.symbol, folder, COMPILE_SECONDS).code).read_bytes()


_COMPILED: Mapping[str, Callable[[TextKernel], bytes]] = {"sm_90a": _cuda, "gfx942": _hip}
