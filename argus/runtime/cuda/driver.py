"""The CUDA driver, and what it answers as diagnostics. The one file that loads it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

from attrs import frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.runtime.cuda.status_codes import answer_to


@cache
def bindings() -> Any:  # noqa: ANN401 reason: untyped
    """The module, None where it is not installed: an extra, of use with a GPU only, and long to load."""
    try:
        return import_module("cuda.bindings.driver")
    except ImportError:
        return None


@frozen
class Driver:
    """Calls of the driver. raw: the module `cuda.bindings.driver`, or what answers like it."""

    raw: Any

    def call(self, name: str, *arguments: object) -> Any:  # noqa: ANN401 reason: untyped
        """What the function gives: nothing, one value or several.

        Raises ArgusError: E406 without a driver or GPU, E407 for code of another GPU, E408 without memory left, E409
        if a kernel failed, E410 if the driver stopped one, E405 for anything else that it refuses.
        """
        try:
            status, *values = getattr(self.raw, name)(*arguments)
        except RuntimeError as problem:
            raise no_gpu(f"the CUDA driver is not installed ({problem})") from None
        except ValueError as problem:
            raise refusal(f"a status that its bindings do not know ({problem})", name) from None
        if status != self.raw.CUresult.CUDA_SUCCESS:
            raise refusal(status.name, name)
        return values[0] if len(values) == 1 else values


@contextmanager
def beside_capture(driver: Driver) -> Generator[None]:
    """Calls that a capture of a CUDA graph by this thread would forbid, such as loading code, are done beside it."""
    relaxed = driver.raw.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    before = driver.call("cuThreadExchangeStreamCaptureMode", relaxed)
    try:
        yield
    finally:
        driver.call("cuThreadExchangeStreamCaptureMode", before)


def installed() -> Driver:
    """The driver of this machine. Raises ArgusError (E406) without its bindings."""
    raw = bindings()
    if raw is None:
        raise no_gpu("the bindings of the CUDA driver are not installed", "pip install 'argus[sm90a]'")
    return Driver(raw)


def no_gpu(reason: str, repair: str = "run it on a machine with a GPU, or in the interpreter") -> ArgusError:
    return ArgusError(Diagnostic("E406", "error", f"no GPU to run on: {reason}", help=repair))


def refusal(status: str, name: str) -> ArgusError:
    """The error for a status of the driver, such as `CUDA_ERROR_OUT_OF_MEMORY`, given by the function `name`."""
    answer = answer_to(status)
    return ArgusError(Diagnostic(answer.code, "error", f"{answer.message}: {name} gave {status}", help=answer.help))
