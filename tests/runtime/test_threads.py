"""The context of a GPU is made current once in each thread, and kernels that are written as text do so, too."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest

from argus.ops import text_kernels
from argus.ops.text_kernels import TextKernel
from argus.runtime.gpu.driver import Code
from argus.runtime.gpu.threads import OncePerThread


class Driver:
    """Keeps what it is asked."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def context_of(self, device: int) -> str:
        return f"context {device}"

    def enter(self, context: str) -> None:
        self.calls.append(context)

    def load(self, *_: object) -> Code:
        self.calls.append("load")
        return Code("function", {})

    def launcher(self, *_: object, **__: object) -> Callable[[], None]:
        return lambda: self.calls.append("launch")


def in_a_thread(run: Callable[[], None]) -> None:
    thread = Thread(target=run)
    thread.start()
    thread.join()


def test_a_thread_with_the_number_of_one_that_ended_is_another() -> None:
    calls: list[int] = []
    once = OncePerThread(lambda: calls.append(1))

    for _ in range(20):  # threads that do not overlap have the same number
        in_a_thread(once)

    assert len(calls) == 20


def test_a_kernel_of_text_makes_its_context_current_in_each_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()

    def of_it(_: TextKernel) -> bytes:
        return b""

    def of_the_target(_: str) -> Driver:
        return driver

    compiled: dict[str, Any] = {"sm_90a": of_it}
    monkeypatch.setattr(text_kernels, "find_driver", of_the_target)
    monkeypatch.setattr(text_kernels, "_COMPILED", compiled)
    text_kernels.clear_cache()
    kernel = TextKernel("nothing", lambda _: "", 32)

    def twice() -> None:
        for _ in range(2):
            kernel.launch("sm_90a", 0, 7, 1, 64)

    try:
        twice()
        in_a_thread(twice)
    finally:
        text_kernels.clear_cache()
    once = ["context 0", "launch", "launch"]
    assert driver.calls == ["context 0", "load", *once, *once]
