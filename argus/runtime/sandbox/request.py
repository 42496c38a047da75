"""What is asked of a text that nobody vouches for, and what comes back: plain data on both sides."""

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
"""Characters of a kernel's text."""


@frozen
class Limits:
    """What a process may use. wall_seconds: until it is killed with all that it has started.

    processes: at a time, threads counted. memory_bytes: addresses of each of them. file_bytes: of all that it writes,
    which is gone when it ends. output_bytes: what is read of its answer.
    """

    wall_seconds: float = field(default=60.0, validator=[gt(0), le(86_400)])
    cpu_seconds: int = field(default=60, validator=[ge(1), le(86_400)])
    memory_bytes: int = field(default=4 << 30, validator=ge(1 << 28))
    processes: int = field(default=24, validator=[ge(1), le(4096)])
    file_bytes: int = field(default=64 << 20, validator=ge(1 << 16))
    output_bytes: int = field(default=32 << 20, validator=ge(1 << 10))
    files: int = field(default=256, validator=[ge(16), le(4096)])


TRACING = Limits(wall_seconds=20.0, cpu_seconds=20, memory_bytes=3 << 29, processes=4, file_bytes=16 << 20)
"""Of the process in which the text runs."""
JUDGING = Limits(
    wall_seconds=300.0,
    cpu_seconds=300,
    memory_bytes=16 << 30,
    processes=128,
    file_bytes=512 << 20,
    output_bytes=256 << 20,
)
"""Of the process that verifies, interprets and builds what came of it; it compiles, which takes threads and room."""


@frozen
class Array:
    """An array as plain data: the name of an element type of Argus, extents, and the elements' bytes."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    @staticmethod
    def of(values: npt.NDArray[Any]) -> Array:
        """Raises LookupError for elements of no type that kernels have."""
        name = next((each.name for each in DTYPES if each.numpy == values.dtype), None)
        if name is None:
            raise LookupError(f"no tensor has elements of {values.dtype}")
        return Array(name, values.shape, np.ascontiguousarray(values).tobytes())

    @property
    def values(self) -> npt.NDArray[Any]:
        """As an array of NumPy, read-only. Raises ValueError, LookupError for bytes that are no such array."""
        dtype = {each.name: each for each in DTYPES}[self.dtype].numpy
        if min(self.shape, default=0) < 0 or math.prod(self.shape) * dtype.itemsize != len(self.data):
            raise ValueError(f"{len(self.data)} bytes are no {self.dtype} of {self.shape}")
        return np.frombuffer(self.data, dtype).reshape(self.shape)


@frozen
class Verify:
    """Prove every invariant, or refute one. seconds: the longest time a question."""

    solver: str = field(default="portfolio", validator=max_len(60))
    seconds: float = field(default=10.0, validator=[gt(0), le(86_400)])
    kind: Literal["verify"] = "verify"


@frozen
class Interpret:
    """Run it on the interpreter: on these arrays, by the names of its tensors, or at these sizes on random ones.

    reference: a kernel that the asker trusts, as `argus.core.serde.write` gives it: it runs on the same inputs, its
    sizes are meant, and the outputs are compared with its own. Without one they are compared with what the kernel
    itself claims, which is no evidence that it claims what was wanted. The outputs come back in any case.
    """

    sizes: Mapping[str, int] = field(factory=dict[str, int])
    seed: int = field(default=0, validator=[ge(0), le((1 << 32) - 1)])
    arrays: Mapping[str, Array] = field(factory=dict[str, Array])
    reference: Mapping[str, Any] | None = field(default=None, repr=False)
    kind: Literal["interpret"] = "interpret"


@frozen
class Build:
    """Emit and compile it for its own target, which is the one named unless that is empty."""

    target: str = field(default="", validator=max_len(20))
    kind: Literal["build"] = "build"


@frozen
class Suggest:
    """Propose invariants that hold. seconds: the longest time a question."""

    seconds: float = field(default=10.0, validator=[gt(0), le(86_400)])
    kind: Literal["suggest"] = "suggest"


Task = Verify | Interpret | Build | Suggest


@frozen
class Request:
    """A text and what to do with each kernel in it, in order.

    file: what reports call it. kernel: one of its kernels or families; all of them if empty.
    """

    text: str = field(validator=max_len(LARGEST_TEXT), repr=False)
    tasks: tuple[Task, ...]
    file: str = field(default="kernel.py", validator=matches_re(_FILE))
    kernel: str = field(default="", validator=max_len(200))
    tracing: Limits = TRACING
    judging: Limits = JUDGING


# -- what comes back -----------------------------------------------------------------------------------------------


Verdict = Literal["proved", "refuted", "unknown", "vacuous"]


@frozen
class Verified:
    """report: of the schema `argus.report/1`, the part about one kernel, its counterexample included.

    text: the diagnostics as a person reads them.
    """

    verdict: Verdict
    exit_code: int
    uncovered: tuple[str, ...]
    report: Mapping[str, Any]
    text: str
    kind: Literal["verified"] = "verified"


@frozen
class Compared:
    """How far the outputs lie from the reference, or from what the kernel claims; share: of what rounding may cause."""

    with_what: str
    elements: int
    worst: float
    allowed: float
    share: float
    outside: int


@frozen
class Interpreted:
    """outputs: by name. compared: None where its claims do not say all of what it computes."""

    outputs: Mapping[str, Array]
    compared: Compared | None
    seconds: float
    kind: Literal["interpreted"] = "interpreted"


@frozen
class Built:
    """files: by name, as `argus build` leaves them. report: what the compiler says of registers and memory."""

    target: str
    files: Mapping[str, bytes]
    report: Mapping[str, Any]
    warnings: tuple[str, ...]
    kind: Literal["built"] = "built"


@frozen
class Suggested:
    """suggestions: of the schema `argus.suggestions/1`, the part about one kernel."""

    suggestions: Mapping[str, Any]
    kind: Literal["suggested"] = "suggested"


@frozen
class Failed:
    """The task has no answer: why, as one diagnostic of the schema `argus.diagnostic/1`, and as text."""

    code: str
    message: str
    diagnostic: Mapping[str, Any]
    text: str
    kind: Literal["failed"] = "failed"


Result = Verified | Interpreted | Built | Suggested | Failed


@frozen
class Judged:
    """One kernel of the text. results: one a task, in order. plain: the kernel itself, as `argus.core.serde` has it."""

    name: str
    target: str
    sizes: tuple[str, ...]
    results: tuple[Result, ...]
    plain: Mapping[str, Any] = field(repr=False)

    def kernel(self) -> Kernel | Program:
        """What the results are about, read once more from data: not the text, which nobody need run again."""
        return read(self.plain)[0]


@frozen
class Answer:
    """isolation: what contained the text. seconds: of both processes."""

    kernels: tuple[Judged, ...]
    isolation: str
    seconds: float


@frozen
class Refused:
    """Nothing is believed of the text, and why: E94x for what it did, E0xx to E2xx for what is wrong with it.

    data: the whole of it in the schema `argus.diagnostic/1`; text: as a person reads it, with the line concerned.
    """

    diagnostic: Diagnostic
    data: Mapping[str, Any] = field(repr=False)
    text: str
    isolation: str
    seconds: float
