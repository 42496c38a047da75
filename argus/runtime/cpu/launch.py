"""One launch of a unit: the request that its executable reads, the process, and what it answers."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from argus.core.dtype import DTYPES
from argus.core.index_text import show
from argus.core.ir import Alloc, Kernel, Strided, walk
from argus.emit.artifact import LaunchInfo, TensorMapArgument, ended_map
from argus.emit.cpu.compiler import Executable
from argus.emit.cpu.shared_arrays import GUARD
from argus.emit.cpu.unit import Unit
from argus.runtime.expressions import value_of

Array = npt.NDArray[Any]
Words = list[int]
Moments = Literal["earliest", "latest", "random"]
Limit = Literal["time", "memory"]
Order = Literal["random", "lowest", "highest", "ranked"]
_MOMENTS: tuple[Moments, ...] = ("earliest", "latest", "random")
_ORDERS: tuple[Order, ...] = ("random", "lowest", "highest", "ranked")
_BYTES = {dtype.name: dtype.bits // 8 for dtype in DTYPES}
_AXES = 5
_LEAST_SLOT = 16
_HUNG, _NO_MEMORY = 3, 101
_STACK = 1 << 18
GIBIBYTES = 8.0
"""Memory of a run beside its tensors: shadows of memory, and what is in flight."""


@frozen
class Finding:
    """A fault of the text at run time. kind: "race", "bounds", "hang" and others. line: of the emitted file.

    where: the thread, the block and the element in words.
    """

    kind: str
    what: str
    line: int
    where: str


@frozen
class Schedule:
    """When asynchronous operations happen within what their waits allow, and which warp goes first."""

    moments: Moments
    order: Order
    seed: int


def schedule_of(seed: int) -> Schedule:
    """The schedule of a seed: the latest moments first, then the earliest, then drawn ones."""
    fixed = (Schedule("latest", "lowest", 0), Schedule("earliest", "highest", 1))
    return fixed[seed] if seed < len(fixed) else Schedule("random", "ranked" if seed % 2 else "random", seed)


@frozen
class TensorState:
    """A tensor between launches: its elements from the first to the last, and which bytes hold data (None: all)."""

    held: Array
    known: Array | None = None


@frozen
class Answer:
    """tensors: what the kernel writes, by parameter. ended: empty, or how the process ended early.

    limit: the limit that ended it, if one did.
    """

    tensors: Mapping[str, TensorState] = field(factory=dict[str, TensorState])
    findings: tuple[Finding, ...] = ()
    ended: str = ""
    limit: Limit | None = None


@frozen
class Limits:
    """Of one run. seconds: by the clock; the process is then killed. gibibytes: address space beside its tensors."""

    seconds: float
    gibibytes: float = GIBIBYTES


def run_unit(
    executable: Executable,
    unit: Unit,
    kernel: Kernel,
    info: LaunchInfo,
    sizes: Mapping[str, int],
    tensors: Mapping[str, TensorState],
    schedule: Schedule,
    limits: Limits,
) -> Answer:
    """Launch once. A crash, a hang and a run out of time or memory are answers, not errors."""
    written = _written(info)
    grid = [value_of(extent, sizes) for extent in info.grid]
    grid += [1] * (3 - len(grid))
    if unit.threads != info.threads or any(grid[axis] % unit.cluster[axis] for axis in range(3)):
        what = f"the launch has {info.threads} threads and a grid of {grid}, the text {unit.threads} and {unit.cluster}"
        return Answer(findings=(Finding("launch", what, 0, "the launch"),))
    names = [buffer.name for buffer in kernel.parameters]
    grain = min((_BYTES[dtype] for dtype in _types(kernel)), default=2)
    shared = info.shared_bytes + GUARD * len(unit.arrays)
    largest = max([shared, *(tensors[name].held.nbytes for name in names)])
    slot_bits = max(_LEAST_SLOT, (2 * largest + 4096).bit_length() + 1)
    own = (len(names) + prod(unit.cluster) << slot_bits) + _STACK * info.threads * prod(unit.cluster)
    words: Words = [
        executable.number,
        int(unit.target == "gfx942"),
        *grid,
        *unit.cluster,
        info.threads,
        shared,
        min(grain, 2),
        int(info.early),
        own + int(limits.gibibytes * 2**30),
    ]
    words += [schedule.seed + 1, _MOMENTS.index(schedule.moments), _ORDERS.index(schedule.order)]
    words += [len(unit.arrays), *(word for each in unit.arrays for word in (each.at, each.size, each.planned))]
    words += [slot_bits, len(names), len(info.maps)]
    words += [len(info.maps) + len(info.arguments)]
    for name in names:
        state = tensors[name]
        words += [state.held.nbytes, state.held.itemsize, int(name in written), int(state.known is None)]
    for made in info.maps:
        words += _map_words(made, names.index(made.tensor), sizes)
    words += [word for number in range(len(info.maps)) for word in (0, number)]
    for argument in info.arguments:
        pointer = argument.kind == "pointer"
        words += [1, names.index(argument.name)] if pointer else [2, sizes[argument.name]]
    data: list[bytes] = []
    for name in names:
        state = tensors[name]
        empty = state.known is not None and not state.known.any()
        words.append(0 if empty else 1 if state.known is None else 2)
        if not empty:
            data += [state.held.tobytes(), *([] if state.known is None else [state.known.tobytes()])]
    return _execute(executable, kernel, words, data, [(n, tensors[n]) for n in names if n in written], limits)


def _execute(
    executable: Executable,
    kernel: Kernel,
    words: Words,
    data: Sequence[bytes],
    out: Sequence[tuple[str, TensorState]],
    limits: Limits,
) -> Answer:
    with tempfile.TemporaryDirectory(prefix="argus-cpu-run-") as name:
        request, answer = Path(name) / "request", Path(name) / "answer"
        request.write_bytes(b"".join([np.array([len(words), *words], np.int64).tobytes(), *data]))
        try:
            done = subprocess.run(  # noqa: S603 reason: the executable that was just compiled
                (str(executable.path), str(request), str(answer)),
                capture_output=True,
                timeout=limits.seconds,
                check=False,
                env={},
            )
        except subprocess.TimeoutExpired:
            return Answer(ended=f"it did not end within {limits.seconds:g} s", limit="time")
        findings = tuple(_finding(json.loads(line), kernel) for line in done.stdout.splitlines() if line.endswith(b"}"))
        if done.returncode == _HUNG:
            return Answer(findings=findings, ended="its threads wait for each other")
        if done.returncode == _NO_MEMORY:
            ended = f"it needs more than {limits.gibibytes:g} GiB of memory beside its tensors"
            return Answer(findings=findings, ended=ended, limit="memory")
        if done.returncode:
            return Answer(findings=findings, ended=f"it ended with status {done.returncode}")
        return Answer(_answered(answer.read_bytes(), out), findings)


def _answered(data: bytes, out: Sequence[tuple[str, TensorState]]) -> dict[str, TensorState]:
    found: dict[str, TensorState] = {}
    at = 0
    for name, state in out:
        held = np.frombuffer(data, state.held.dtype, state.held.size, at).copy()
        known = np.frombuffer(data, np.uint8, held.nbytes, at + held.nbytes).copy()
        at += 2 * held.nbytes
        found[name] = TensorState(held, None if known.all() else known)
    return found


def _written(info: LaunchInfo) -> frozenset[str]:
    """The tensors that the launch may write: pointers of the description, and what is mapped alone."""
    pointers = {each.name: each.written for each in info.arguments if each.kind == "pointer"}
    return frozenset(
        [*(n for n, w in pointers.items() if w), *(each.tensor for each in info.maps if each.tensor not in pointers)]
    )


def _types(kernel: Kernel) -> list[str]:
    shared = [s.buffer.dtype.name for s in walk(kernel.body) if isinstance(s, Alloc) and s.buffer.space == "shared"]
    return [name for name in shared if _BYTES.get(name, 0)]


def _map_words(made: TensorMapArgument, number: int, sizes: Mapping[str, int]) -> Words:
    """A tensor map as the driver encodes it: innermost axis first, strides in bytes."""
    size = _BYTES[made.dtype]
    shape, apart = (tuple(value_of(each, sizes) for each in of) for of in (made.shape, made.strides))
    if made.ended:
        shape, apart = ended_map(shape, apart, size)
    extents, strides, box = shape[::-1], [each * size for each in reversed(apart)], made.box[::-1]
    pad = [0] * (_AXES - len(extents))
    return [number, len(extents), size, made.swizzle, *extents, *pad, *strides, *pad, *box, *pad]


def _finding(data: Mapping[str, Any], kernel: Kernel) -> Finding:
    block = ", ".join(map(str, data["block"]))
    where = f"thread {data['thread']} of block ({block})"
    if data.get("space") == "tensor":
        buffer = kernel.parameters[int(data["number"])]
        size = buffer.dtype.bits // 8
        where += f", element {data['offset'] // size} of `{buffer.name}`"
    elif data.get("space") == "shared":
        where += f", byte {data['offset']} of shared memory of block {data['number']} of its cluster"
    elif data["offset"]:
        where += f", at {data['offset']}"
    if "other" in data:
        where += f", against {data['other']}"
    return Finding(data["kind"], data["what"], data["line"], where)


def laid_out(
    kernel: Kernel, sizes: Mapping[str, int], arrays: Mapping[str, Array], unknown: frozenset[str]
) -> dict[str, TensorState]:
    """Each parameter's memory: its elements at their strides. unknown: the tensors that hold no data at first."""
    found: dict[str, TensorState] = {}
    for buffer in kernel.parameters:
        array = arrays[buffer.name]
        held = np.zeros(max(1, _span(array.shape, strides_of(kernel, buffer.name, sizes))), array.dtype)
        if array.size:
            view_of(held, array.shape, strides_of(kernel, buffer.name, sizes))[...] = array
        known = np.zeros(held.nbytes, np.uint8) if buffer.name in unknown else None
        found[buffer.name] = TensorState(held, known)
    return found


def strides_of(kernel: Kernel, name: str, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """A parameter's strides in elements."""
    buffer = next(each for each in kernel.parameters if each.name == name)
    assert isinstance(buffer.layout, Strided), name
    return tuple(value_of(show(stride), sizes) for stride in buffer.layout.strides)


def view_of(held: Array, shape: Sequence[int], strides: Sequence[int]) -> Array:
    """The elements of a tensor within its memory."""
    return np.lib.stride_tricks.as_strided(held, tuple(shape), tuple(stride * held.itemsize for stride in strides))


def _span(shape: Sequence[int], strides: Sequence[int]) -> int:
    return 0 if not prod(shape) else 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
