"""Requests to the sandbox and their answers, as plain data."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from attrs import field, frozen
from attrs.validators import ge, gt, le, matches_re, max_len

from argus.core.diagnostic import Diagnostic
from argus.core.dtype import DTYPES
from argus.core.ir import Kernel, Program
from argus.core.serde import read

_FILE = re.compile(r"[A-Za-z_][\w-]{0,60}\.py", re.ASCII)
LARGEST_TEXT = 1 << 20
"""The maximum length of a kernel's text, in characters."""


@frozen
class Limits:
    """Resource limits of a sandboxed process. wall_seconds: after which it and all that it started are killed.

    processes: at one time, threads included. memory_bytes: address space of each process. file_bytes: of all files that
    it writes, which disappear when it ends. output_bytes: of its standard output. files: open at one time.
    """

    wall_seconds: float = field(default=60.0, validator=[gt(0), le(86_400)])
    cpu_seconds: int = field(default=60, validator=[ge(1), le(86_400)])
    memory_bytes: int = field(default=4 << 30, validator=ge(1 << 28))
    processes: int = field(default=24, validator=[ge(1), le(4096)])
    file_bytes: int = field(default=64 << 20, validator=ge(1 << 16))
    output_bytes: int = field(default=32 << 20, validator=ge(1 << 10))
    files: int = field(default=256, validator=[ge(16), le(4096)])


TRACING = Limits(wall_seconds=20.0, cpu_seconds=20, memory_bytes=3 << 29, processes=4, file_bytes=16 << 20)
"""Default limits of the process that runs the text."""
JUDGING = Limits(
    wall_seconds=300.0,
    cpu_seconds=300,
    memory_bytes=16 << 30,
    processes=128,
    file_bytes=512 << 20,
    output_bytes=256 << 20,
)
"""Default limits of the process that verifies, interprets and builds the kernels; compiling takes threads and space."""


@frozen
class Array:
    """An array as plain data: the name of an element type of Argus, extents, and the elements' bytes."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    @staticmethod
    def of(values: npt.NDArray[Any]) -> Array:
        """From a NumPy array. Raises LookupError for an element type that kernels do not have."""
        name = next((each.name for each in DTYPES if each.numpy == values.dtype), None)
        if name is None:
            raise LookupError(f"kernels have no element type {values.dtype}")
        return Array(name, values.shape, np.ascontiguousarray(values).tobytes())

    @property
    def values(self) -> npt.NDArray[Any]:
        """The array as a read-only NumPy array. Raises ValueError or LookupError where the data is malformed."""
        dtype = {each.name: each for each in DTYPES}[self.dtype].numpy
        if min(self.shape, default=0) < 0 or math.prod(self.shape) * dtype.itemsize != len(self.data):
            raise ValueError(f"{len(self.data)} bytes are not an array of {self.dtype} of shape {self.shape}")
        return np.frombuffer(self.data, dtype).reshape(self.shape)


@frozen
class Verify:
    """Prove every invariant, or refute one. seconds: the time limit per query."""

    solver: str = field(default="portfolio", validator=max_len(60))
    seconds: float = field(default=10.0, validator=[gt(0), le(86_400)])
    kind: Literal["verify"] = "verify"


@frozen
class Interpret:
    """Run the kernel in the interpreter, on these arrays by tensor name, or at these sizes on random arrays.

    reference: a kernel that the caller trusts, as written by `argus.core.serde.write`. It runs on the same inputs, the
    sizes are its own, and the outputs are compared with its outputs. Without a reference they are compared with the
    kernel's own claims, which is no evidence that those are the intended ones. The outputs are returned in any case.
    """

    sizes: Mapping[str, int] = field(factory=dict[str, int])
    seed: int = field(default=0, validator=[ge(0), le((1 << 32) - 1)])
    arrays: Mapping[str, Array] = field(factory=dict[str, Array])
    reference: Mapping[str, Any] | None = field(default=None, repr=False)
    kind: Literal["interpret"] = "interpret"


@frozen
class Build:
    """Emit and compile the kernel for its own target, which must equal `target` unless that is empty."""

    target: str = field(default="", validator=max_len(20))
    kind: Literal["build"] = "build"


@frozen
class Suggest:
    """Suggest claims that hold. seconds: the time limit per query."""

    seconds: float = field(default=10.0, validator=[gt(0), le(86_400)])
    kind: Literal["suggest"] = "suggest"


Task = Verify | Interpret | Build | Suggest


@frozen
class Request:
    """A text and the tasks to run on each of its kernels, in order.

    file: the text's name in reports. kernel: one of its kernels or families; all if empty. tracing, judging: limits of
    the process that runs the text, and of the process that runs the tasks.
    """

    text: str = field(validator=max_len(LARGEST_TEXT), repr=False)
    tasks: tuple[Task, ...]
    file: str = field(default="kernel.py", validator=matches_re(_FILE))
    kernel: str = field(default="", validator=max_len(200))
    tracing: Limits = TRACING
    judging: Limits = JUDGING


# -- answers -------------------------------------------------------------------------------------------------------


Verdict = Literal["proved", "refuted", "unknown", "vacuous"]


@frozen
class Verified:
    """The result of `Verify`. report: one kernel's part of schema `argus.report/1`, with its counterexample.

    text: the diagnostics rendered as text.
    """

    verdict: Verdict
    exit_code: int
    uncovered: tuple[str, ...]
    report: Mapping[str, Any]
    text: str
    kind: Literal["verified"] = "verified"


@frozen
class Compared:
    """The comparison of outputs with a reference or the kernel's claims; share: largest ratio of error to its bound."""

    with_what: str
    elements: int
    worst: float
    allowed: float
    share: float
    outside: int


@frozen
class Interpreted:
    """The result of `Interpret`. outputs: by name. compared: None without a reference and without sufficient claims."""

    outputs: Mapping[str, Array]
    compared: Compared | None
    seconds: float
    kind: Literal["interpreted"] = "interpreted"


@frozen
class Built:
    """The result of `Build`. files: by name, as written by `argus build`. report: register and memory usage."""

    target: str
    files: Mapping[str, bytes]
    report: Mapping[str, Any]
    warnings: tuple[str, ...]
    kind: Literal["built"] = "built"


@frozen
class Suggested:
    """The result of `Suggest`. suggestions: one kernel's part of schema `argus.suggestions/1`."""

    suggestions: Mapping[str, Any]
    kind: Literal["suggested"] = "suggested"


@frozen
class Failed:
    """A task that failed: its diagnostic in schema `argus.diagnostic/1`, and as text."""

    code: str
    message: str
    diagnostic: Mapping[str, Any]
    text: str
    kind: Literal["failed"] = "failed"


Result = Verified | Interpreted | Built | Suggested | Failed


@frozen
class CheckedKernel:
    """One kernel of the text. results: one per task, in order. plain: the kernel, as written by `argus.core.serde`."""

    name: str
    target: str
    sizes: tuple[str, ...]
    results: tuple[Result, ...]
    plain: Mapping[str, Any] = field(repr=False)

    def kernel(self) -> Kernel | Program:
        """The kernel that the results are about, parsed from `plain`; the text is not run again."""
        return read(self.plain)[0]


@frozen
class Answer:
    """The sandbox's answer. isolation: the kind that was used. seconds: wall-clock time of both processes."""

    kernels: tuple[CheckedKernel, ...]
    isolation: str
    seconds: float


@frozen
class Refused:
    """The text was rejected: E94x for what its process did, E0xx to E2xx for errors in the text.

    data: the diagnostic in schema `argus.diagnostic/1`; text: the diagnostic as text, with the line concerned.
    """

    diagnostic: Diagnostic
    data: Mapping[str, Any] = field(repr=False)
    text: str
    isolation: str
    seconds: float
