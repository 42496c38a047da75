"""Finds the user's source location of a DSL call, and the variable that its result is assigned to.

Bytecode serves only diagnostics and names, never the meaning of a kernel. Tested on CPython 3.11 to 3.13.
"""

from __future__ import annotations

import contextlib
import dis
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from types import CodeType, FrameType
from typing import cast

from attrs import evolve

from argus.core.span import Frame, Span

_CORE = __file__.rpartition("/dsl/")[0]
_PACKAGE = _CORE.rpartition("/")[0]
_FACADES = (f"{_PACKAGE}/language.py", f"{_PACKAGE}/deprecated.py")
_STORES = ("STORE_FAST", "STORE_NAME", "STORE_DEREF", "STORE_GLOBAL")
_LOADS = ("LOAD_FAST", "LOAD_NAME", "LOAD_DEREF", "LOAD_GLOBAL", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW")
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>")
_SKIPPED = ("CACHE", "NOP", "PRECALL", "EXTENDED_ARG", "COPY_FREE_VARS")
_RETURNS = ("RETURN_VALUE", "RETURN_CONST")


def user_frame() -> FrameType | None:
    """The innermost frame outside the DSL's own code."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]  # the documented way to a caller
    while frame is not None and _is_argus_file(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def is_argus_code(code: CodeType) -> bool:
    """Whether a function belongs to the language rather than to its user."""
    return _is_argus_file(code.co_filename)


def _is_argus_file(file: str) -> bool:
    return file.startswith((_CORE, "<attrs")) or file in (*_FACADES, contextlib.__file__)


def span_of(frame: FrameType | None, root: CodeType | None) -> Span:
    """The source location being executed in `frame` and its callers, out to the function `root`.

    A comprehension is part of the function that it stands in: since CPython 3.12 it has no frame of its own.
    """
    frames: list[Frame] = []
    while frame is not None:
        if frames and frames[-1].function in _COMPREHENSIONS:
            frames[-1] = evolve(frames[-1], function=frame.f_code.co_name)
        elif not _is_argus_file(frame.f_code.co_filename):
            frames.append(_frame_location(frame))
        if frame.f_code is root:
            return Span(tuple(frames))
        frame = frame.f_back
    return Span(tuple(frames[:1]))


def _frame_location(frame: FrameType) -> Frame:
    return frame_at(frame.f_code, frame.f_lasti, frame.f_lineno)


def frame_at(code: CodeType, offset: int, fallback: int) -> Frame:
    """The source location of one bytecode instruction. fallback: its line, for code without positions."""
    line, end_line, column, end_column = next(islice(code.co_positions(), offset // 2, None), (None, None, None, None))
    if line is None or line != end_line:
        end_column = column
    return Frame(code.co_filename, line or fallback, column or 0, end_column or 0, code.co_name)


def span_of_function(code: CodeType) -> Span:
    """The line that defines a function."""
    return Span((Frame(code.co_filename, code.co_firstlineno, 0, 0, code.co_name),))


def assigned_name(frame: FrameType | None) -> str | None:
    """The variable or attribute that the current statement assigns its result to, if the assignment comes next."""
    if frame is None:
        return None
    for instruction in _instructions_after(frame.f_code, frame.f_lasti):
        if instruction.opname in _SKIPPED:
            continue
        if instruction.opname == "STORE_ATTR":
            return str(instruction.argval)
        return next((name for name, stores in _name_accesses(instruction) if stores), None)
    return None


@lru_cache(maxsize=256)
def _instructions(code: CodeType) -> tuple[dis.Instruction, ...]:
    """The instructions of a code object, cached: every statement of a kernel needs those of the same function."""
    return tuple(dis.get_instructions(code))


def _instructions_after(code: CodeType, offset: int) -> Iterator[dis.Instruction]:
    return (instruction for instruction in _instructions(code) if instruction.offset > offset)


def carried_names(frame: FrameType) -> frozenset[str]:
    """Names that the body of the `for` loop being entered reads before it assigns them.

    Such a name carries a value from one iteration to the next. Empty if the frame is not entering a `for` loop.
    """
    instructions = _instructions(frame.f_code)
    header = next((i for i in instructions if i.offset == frame.f_lasti), None)
    if header is None or header.opname != "FOR_ITER":
        return frozenset()
    body = [i for i in instructions if header.offset < i.offset < int(header.argval)]
    first: dict[str, bool] = {}
    carried: set[str] = set()
    for name, stores in (use for instruction in body for use in _name_accesses(instruction)):
        first.setdefault(name, stores)
        if stores and not first[name]:
            carried.add(name)
    return frozenset(carried)


def _name_accesses(instruction: dis.Instruction) -> Iterator[tuple[str, bool]]:
    """The names that an instruction accesses, in order, each with whether it is stored; CPython 3.13 fuses pairs."""
    name, argument = instruction.opname, cast(object, instruction.argval)
    if isinstance(argument, tuple) and "_FAST_" in name:
        arguments = cast(tuple[str, str], argument)
        yield arguments[0], name.startswith("STORE")
        yield arguments[1], "_STORE" in name
    elif isinstance(argument, str) and name in _LOADS + _STORES:
        yield argument, name in _STORES


def called_by_for(frame: FrameType) -> bool:
    """Whether the frame is calling `iter` for a `for` statement."""
    return any(i.offset == frame.f_lasti and i.opname == "GET_ITER" for i in _instructions(frame.f_code))


def leaves_early(frame: FrameType) -> bool:
    """Whether the `with` statement that the frame is leaving ends by `return`, `break` or `continue`.

    Its exception handler continues where the end of the body falls through to, so that position is compared with the
    one where the frame continues. False if the frame is not leaving a `with` statement.
    """
    code = _instructions(frame.f_code)
    at = {instruction.offset: position for position, instruction in enumerate(code)}
    here = at.get(frame.f_lasti)
    if here is None:
        return False
    handlers = [
        position
        for position, instruction in enumerate(code)
        if instruction.opname == "WITH_EXCEPT_START" and _source_start(instruction) == _source_start(code[here])
    ]
    return bool(handlers) and not any(
        _same_continuation(code, at, here + 1, _handler_continuation(code, at, h)) for h in handlers
    )


def _source_start(instruction: dis.Instruction) -> tuple[int | None, int | None]:
    positions = instruction.positions
    return (None, None) if positions is None else (positions.lineno, positions.col_offset)


def _handler_continuation(code: Sequence[dis.Instruction], at: dict[int, int], handler: int) -> int:
    """The position where a handler continues after suppressing an exception, past its stack cleanup."""
    jump = next(i for i in code[handler:] if i.opname.startswith("POP_JUMP"))
    position = at[int(jump.argval)]
    while code[position].opname in ("POP_TOP", "POP_EXCEPT", *_SKIPPED):
        position += 1
    return position


def _same_continuation(code: Sequence[dis.Instruction], at: dict[int, int], one: int, other: int) -> bool:
    """Whether execution from two positions runs equal instructions until they coincide or return."""
    for _ in code:
        one, other = _skip_no_ops(code, at, one), _skip_no_ops(code, at, other)
        a, b = code[one], code[other]
        if one == other or (a.opname, a.argval) != (b.opname, b.argval):
            return one == other
        if a.opname in _RETURNS:
            return True
        one, other = one + 1, other + 1
    return True


def _skip_no_ops(code: Sequence[dis.Instruction], at: dict[int, int], position: int) -> int:
    """The next position with an effect: skips unconditional jumps and pops of unused results."""
    while True:
        instruction = code[position]
        if instruction.opname.startswith(("JUMP_FORWARD", "JUMP_BACKWARD")):
            position = at[int(instruction.argval)]
        elif instruction.opname in ("POP_TOP", *_SKIPPED):
            position += 1
        else:
            return position
