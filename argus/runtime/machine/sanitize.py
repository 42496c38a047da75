"""Run a kernel of anybody's gfx942 code object as a launch description says, and compare what it leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen

from argus.core.diagnostic import Diagnostic, Label
from argus.core.span import NOWHERE, Frame, Span
from argus.interp.gfx942.code_object import CodeObject, read_code_object
from argus.interp.gfx942.dispatch import Argument, Tensor
from argus.interp.gfx942.findings import Finding, Kind
from argus.interp.gfx942.launch import LIMIT, execute
from argus.interp.gfx942.line_table import LineTable, line_table
from argus.runtime.machine.spec import BUFFER_TYPES, Buffer, Expected, Spec, Value, refused

Array = npt.NDArray[Any]
_REPAIRS: dict[Kind, str] = {
    "uninitialised register": "write the value on every path that leads here",
    "uninitialised LDS": "write this place, and put a barrier between the write and the read",
    "used before its wait": "wait with s_waitcnt before the use; if a compiler made the code, report it",
    "missing wait states": "put s_nop in between; if a compiler made the code, report it",
    "LDS race": "put a barrier (__syncthreads) between the two accesses",
    "out of bounds": "guard the access, or give the buffer that the kernel needs",
    "out of LDS": "guard the access, or ask for more LDS (dynamic_lds)",
    "misaligned": "align the address to the size of the access",
    "trap": "look at the condition that leads here",
    "no end": "look for a loop without end, or give a higher --limit",
}


@frozen
class Sanitized:
    """instructions: executed ones, counted once for each wave. elements: of outputs that were compared."""

    kernel: str
    diagnostics: tuple[Diagnostic, ...]
    instructions: int
    elements: int


def sanitize(data: bytes, kernel: str, spec: Spec, *, seed: int = 0, limit: int = LIMIT) -> Sanitized:
    """Execute a kernel of a code object. seed: of the order of waves. limit: instructions of one wave.

    Raises ArgusError: E420 for a code object or arguments that do not fit, E422 for a file of the description that
    does not, E502 for an instruction that is not modelled.
    """
    try:
        return _sanitized(read_code_object(data), kernel, spec, seed, limit)
    except MemoryError as error:
        raise refused("its buffers need more memory than there is") from error


def _sanitized(code: CodeObject, kernel: str, spec: Spec, seed: int, limit: int) -> Sanitized:
    given = [(each, _argument(each, spec)) for each in spec.arguments]
    arguments = [each for _, each in given]
    wanted = {each.name: _expected(each, spec) for each in _buffers(spec) if each.expected is not None}
    done = execute(code, kernel, spec.grid, spec.block, arguments, dynamic_lds=spec.dynamic_lds, seed=seed, limit=limit)
    lines = line_table(code)
    found = [_diagnostic(each, kernel, lines) for each in done.findings]
    for each in _buffers(spec):
        if each.expected is not None:
            found += _difference(kernel, each, each.expected, done.tensors[each.name], wanted[each.name])
    return Sanitized(kernel, tuple(found), done.instructions, sum(each.size for each in wanted.values()))


def _buffers(spec: Spec) -> list[Buffer]:
    return [each for each in spec.arguments if isinstance(each, Buffer)]


def _argument(each: Buffer | Value, spec: Spec) -> Argument:
    if isinstance(each, Value):
        return each.raw
    return Tensor(each.name, _start(each, spec), written=each.access != "read")


def _start(each: Buffer, spec: Spec) -> Array:
    kind = np.dtype(BUFFER_TYPES[each.dtype])
    match each.start:
        case "file":
            held = _loaded(spec.folder / each.file, each)
            if held.dtype != kind:
                raise refused(f"{each.file} holds {held.dtype}, expected {each.dtype} of `{each.name}`")
            return held
        case "iota":
            return np.arange(np.prod(each.shape, dtype=np.int64)).astype(kind).reshape(each.shape)
        case "zeros":
            return np.zeros(each.shape, kind)
        case _:
            return _random(each, kind)


def _random(each: Buffer, kind: np.dtype[Any]) -> Array:
    """Uniform: of floats in [-1, 1), of integers in [0, 100), if the description gives no bounds."""
    random = np.random.default_rng(each.seed)
    whole = kind.kind in "iu"
    low = (0 if whole else -1) if each.low is None else each.low
    high = (100 if whole else 1) if each.high is None else each.high
    if not low < high:
        raise refused(f"`{each.name}`: expected `low` below `high`, found {low:g} and {high:g}")
    if not whole:
        return random.uniform(low, high, each.shape).astype(kind)
    bounds = np.iinfo(kind)
    if low < bounds.min or high - 1 > bounds.max:
        raise refused(f"`{each.name}`: {low:g} to {high:g} does not fit {each.dtype}")
    return random.integers(int(low), int(high), each.shape, kind)


def _loaded(path: Path, each: Buffer) -> Array:
    """A .npy file. NumPy stores types that it does not know, such as bf16, as plain bytes of their size."""
    try:
        held: Array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise refused(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    if held.shape != each.shape:
        raise refused(f"{path} has the shape {held.shape}, expected {each.shape} of `{each.name}`")
    kind = np.dtype(BUFFER_TYPES[each.dtype])
    return held.view(kind) if held.dtype.kind == "V" and held.dtype.itemsize == kind.itemsize else held


def _expected(each: Buffer, spec: Spec) -> Array:
    assert each.expected is not None
    held = _loaded(spec.folder / each.expected.file, each)
    if held.dtype.kind not in "fiuV" or (held.dtype.kind == "V" and held.dtype != np.dtype(BUFFER_TYPES[each.dtype])):
        raise refused(f"{each.expected.file} holds {held.dtype}, expected numbers")
    return held


def _difference(kernel: str, each: Buffer, wanted: Expected, found: Array, expected: Array) -> list[Diagnostic]:
    """E417 if an element is further from what is expected than the bounds allow."""
    left, right = (part.astype(np.float64) if part.dtype.kind not in "iu" else part for part in (found, expected))
    with np.errstate(all="ignore"):
        if wanted.absolute or wanted.relative:
            left, right = left.astype(np.float64), right.astype(np.float64)
            near = np.abs(left - right) <= wanted.absolute + wanted.relative * np.abs(right)
        else:
            near = np.zeros(left.shape, np.bool_)
        same = near | (left == right) | np.not_equal(left, left) & np.not_equal(right, right)
    if same.all():
        return []
    first = tuple(int(axis[0]) for axis in np.nonzero(~same))
    at = ", ".join(map(str, first))
    count = int((~same).sum())
    message = (
        f"`{each.name}`[{at}] is {left[first]}, expected {right[first]}; {count:,} of {same.size:,} elements differ"
    )
    return [Diagnostic("E417", "error", message, kernel=kernel, help="see the findings, or the kernel's arithmetic")]


def _diagnostic(found: Finding, kernel: str, lines: LineTable) -> Diagnostic:
    """E416 at the source line, with the instruction and, of two, the other one's line."""
    facts = [
        ("instruction", f"`{found.instruction}` at 0x{found.address:x}"),
        ("where", str(found.where)),
    ]
    secondary: tuple[Label, ...] = ()
    if found.other:
        facts.append(("other instruction", f"at 0x{found.other:x}"))
        span = _span(lines, found.other, kernel)
        secondary = (Label(span, "the other instruction"),) if span.frame is not None else ()
    primary = Label(_span(lines, found.address, kernel), found.kind)
    message = f"{found.kind}: {found.what}"
    return Diagnostic(
        "E416", "error", message, primary, secondary, tuple(facts), help=_REPAIRS[found.kind], kernel=kernel
    )


def _span(lines: LineTable, address: int, kernel: str) -> Span:
    file, line = lines.place_of(address)
    return Span((Frame(file, line, 0, 0, kernel),)) if file and line else NOWHERE
