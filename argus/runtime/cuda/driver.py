"""Calls of the CUDA driver, with its errors as diagnostics; the only module that loads the driver."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

from attrs import frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.runtime.cuda.status_codes import meaning_of


@cache
def bindings() -> Any:  # noqa: ANN401 reason: untyped
    """The module `cuda.bindings.driver`, or None where it is not installed. Loaded on demand: it is slow to import."""
    try:
        return import_module("cuda.bindings.driver")
    except ImportError:
        return None


@frozen
class Driver:
    """Calls of the driver. raw: the module `cuda.bindings.driver`, or an object with the same interface."""

    raw: Any

    def call(self, name: str, *arguments: object) -> Any:  # noqa: ANN401 reason: untyped
        """The function's results: an empty list, one value, or a list of several.

        Raises ArgusError: E406 without a driver or GPU, E407 for code of another GPU, E408 if memory is exhausted, E409
        if a kernel failed, E410 if the driver stopped one, E405 for any other error.
        """
        try:
            status, *values = getattr(self.raw, name)(*arguments)
        except RuntimeError as problem:
            raise no_gpu(f"the CUDA driver is not installed ({problem})") from None
        except ValueError as problem:
            raise driver_error(f"a status unknown to its bindings ({problem})", name) from None
        if status != self.raw.CUresult.CUDA_SUCCESS:
            raise driver_error(status.name, name)
        return values[0] if len(values) == 1 else values


@contextmanager
def relaxed_capture(driver: Driver) -> Generator[None]:
    """Allow calls, such as loading code, that a CUDA graph capture by this thread would forbid, uncaptured."""
    relaxed = driver.raw.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    before = driver.call("cuThreadExchangeStreamCaptureMode", relaxed)
    try:
        yield
    finally:
        driver.call("cuThreadExchangeStreamCaptureMode", before)


def find_driver() -> Driver:
    """The driver of this machine. Raises ArgusError (E406) without its bindings."""
    raw = bindings()
    if raw is None:
        raise no_gpu("the bindings of the CUDA driver are not installed", "pip install 'argus[sm90a]'")
    return Driver(raw)


def no_gpu(reason: str, repair: str = "run it on a machine with a GPU, or in the interpreter") -> ArgusError:
    return ArgusError(Diagnostic("E406", "error", f"no GPU to run on: {reason}", help=repair))


def driver_error(status: str, name: str) -> ArgusError:
    """The error for a status such as `CUDA_ERROR_OUT_OF_MEMORY` that the driver function `name` returned."""
    meaning = meaning_of(status)
    message = f"{meaning.message}: {name} returned {status}"
    return ArgusError(Diagnostic(meaning.code, "error", message, help=meaning.help))
