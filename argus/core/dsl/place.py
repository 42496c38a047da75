"""Where a DSL call stands in the user's program, and the name it is about to get.

Bytecode is read for diagnostics and names only, never for meaning. Checked on CPython 3.11 to 3.13.
"""

from __future__ import annotations

import contextlib
import dis
import sys
from collections.abc import Iterator
from itertools import islice
from types import CodeType, FrameType

from argus.core.span import Frame, Span

_CORE = __file__.rpartition("/dsl/")[0]
_FACADE = _CORE.rpartition("/")[0] + "/language.py"
_STORES = ("STORE_FAST", "STORE_NAME", "STORE_DEREF", "STORE_GLOBAL", "STORE_ATTR")
_LOADS = ("LOAD_FAST", "LOAD_NAME", "LOAD_DEREF", "LOAD_GLOBAL", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW")
_SKIPPED = ("CACHE", "NOP", "PRECALL", "EXTENDED_ARG", "COPY_FREE_VARS")


def user_frame() -> FrameType | None:
    """The innermost frame that is not Argus' own."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def _is_ours(file: str) -> bool:
    return file.startswith((_CORE, "<attrs")) or file in (_FACADE, contextlib.__file__)


def span_of(frame: FrameType | None, root: CodeType | None) -> Span:
    """The place being executed in `frame` and its callers, up to the function `root`."""
    frames: list[Frame] = []
    while frame is not None:
        if not _is_ours(frame.f_code.co_filename):
            frames.append(_describe(frame))
        if frame.f_code is root:
            return Span(tuple(frames))
        frame = frame.f_back
    return Span(tuple(frames[:1]))


def _describe(frame: FrameType) -> Frame:
    code = frame.f_code
    line, end_line, column, end_column = next(
        islice(code.co_positions(), frame.f_lasti // 2, None), (frame.f_lineno, None, 0, 0)
    )
    if line is None or line != end_line:
        end_column = column
    return Frame(code.co_filename, line or frame.f_lineno, column or 0, end_column or 0, code.co_name)


def span_of_function(code: CodeType) -> Span:
    """The line that defines a function."""
    return Span((Frame(code.co_filename, code.co_firstlineno, 0, 0, code.co_name),))


def assigned_name(frame: FrameType | None) -> str | None:
    """The name that the statement being executed stores its result under, if that is all it does."""
    if frame is None:
        return None
    for instruction in _after(frame.f_code, frame.f_lasti):
        if instruction.opname in _SKIPPED:
            continue
        return str(instruction.argval) if instruction.opname in _STORES else None
    return None


def _after(code: CodeType, offset: int) -> Iterator[dis.Instruction]:
    return (instruction for instruction in dis.get_instructions(code) if instruction.offset > offset)


def carried_names(frame: FrameType) -> frozenset[str]:
    """Names that the body of the `for` loop being entered reads first and stores later.

    Such a name would carry a value from one iteration to the next. Empty if no `for` statement asks.
    """
    instructions = list(dis.get_instructions(frame.f_code))
    header = next((i for i in instructions if i.offset == frame.f_lasti), None)
    if header is None or header.opname != "FOR_ITER":
        return frozenset()
    read_first: set[str] = set()
    seen: set[str] = set()
    carried: set[str] = set()
    for instruction in instructions:
        if not header.offset < instruction.offset < int(header.argval):
            continue
        name = str(instruction.argval)
        if instruction.opname in _LOADS and name not in seen:
            read_first.add(name)
        if instruction.opname in _STORES[:-1] and name in read_first:
            carried.add(name)
        if instruction.opname in _LOADS + _STORES[:-1]:
            seen.add(name)
    return frozenset(carried)
