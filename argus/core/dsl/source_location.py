"""Where a DSL call stands in the user's program, and the name it is about to get.

Bytecode is read for diagnostics and names only, never for meaning. Checked on CPython 3.11 to 3.13.
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

from argus.core.span import Frame, Span

_CORE = __file__.rpartition("/dsl/")[0]
_FACADE = _CORE.rpartition("/")[0] + "/language.py"
_STORES = ("STORE_FAST", "STORE_NAME", "STORE_DEREF", "STORE_GLOBAL")
_LOADS = ("LOAD_FAST", "LOAD_NAME", "LOAD_DEREF", "LOAD_GLOBAL", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW")
_SKIPPED = ("CACHE", "NOP", "PRECALL", "EXTENDED_ARG", "COPY_FREE_VARS")
_RETURNS = ("RETURN_VALUE", "RETURN_CONST")


def user_frame() -> FrameType | None:
    """The innermost frame that is not Argus' own."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]  # the documented way to a caller
    while frame is not None and _is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def is_argus_code(code: CodeType) -> bool:
    """Whether a function belongs to the language, not to its user."""
    return _is_ours(code.co_filename)


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
    return frame_at(frame.f_code, frame.f_lasti, frame.f_lineno)


def frame_at(code: CodeType, offset: int, fallback: int) -> Frame:
    """The source of one instruction; `fallback` is its line where the code has no positions."""
    line, end_line, column, end_column = next(islice(code.co_positions(), offset // 2, None), (None, None, None, None))
    if line is None or line != end_line:
        end_column = column
    return Frame(code.co_filename, line or fallback, column or 0, end_column or 0, code.co_name)


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
        if instruction.opname == "STORE_ATTR":
            return str(instruction.argval)
        return next((name for name, stores in _uses(instruction) if stores), None)
    return None


@lru_cache(maxsize=256)
def _instructions(code: CodeType) -> tuple[dis.Instruction, ...]:
    """A function of the code alone; a kernel's lines ask for the same few over and over."""
    return tuple(dis.get_instructions(code))


def _after(code: CodeType, offset: int) -> Iterator[dis.Instruction]:
    return (instruction for instruction in _instructions(code) if instruction.offset > offset)


def carried_names(frame: FrameType) -> frozenset[str]:
    """Names that the body of the `for` loop being entered reads first and stores later.

    Such a name would carry a value from one iteration to the next. Empty if no `for` statement asks.
    """
    instructions = _instructions(frame.f_code)
    header = next((i for i in instructions if i.offset == frame.f_lasti), None)
    if header is None or header.opname != "FOR_ITER":
        return frozenset()
    body = [i for i in instructions if header.offset < i.offset < int(header.argval)]
    first: dict[str, bool] = {}
    carried: set[str] = set()
    for name, stores in (use for instruction in body for use in _uses(instruction)):
        first.setdefault(name, stores)
        if stores and not first[name]:
            carried.add(name)
    return frozenset(carried)


def _uses(instruction: dis.Instruction) -> Iterator[tuple[str, bool]]:
    """The names that an instruction reads, or stores, in its order; CPython 3.13 fuses pairs of them."""
    name, argument = instruction.opname, cast(object, instruction.argval)
    if isinstance(argument, tuple) and "_FAST_" in name:
        arguments = cast(tuple[str, str], argument)
        yield arguments[0], name.startswith("STORE")
        yield arguments[1], "_STORE" in name
    elif isinstance(argument, str) and name in _LOADS + _STORES:
        yield argument, name in _STORES


def called_by_for(frame: FrameType) -> bool:
    """Whether the frame is at the start of a `for` statement, which asks an object for its iterator."""
    return any(i.offset == frame.f_lasti and i.opname == "GET_ITER" for i in _instructions(frame.f_code))


def leaves_early(frame: FrameType) -> bool:
    """Whether the `with` statement whose end the frame is executing is left by `return`, `break` or `continue`.

    Its handler of exceptions goes on where the body falls through to, so that is compared with where the frame
    goes on. False where no `with` statement asks.
    """
    code = _instructions(frame.f_code)
    at = {instruction.offset: position for position, instruction in enumerate(code)}
    here = at.get(frame.f_lasti)
    if here is None:
        return False
    handlers = [
        position
        for position, instruction in enumerate(code)
        if instruction.opname == "WITH_EXCEPT_START" and _start(instruction) == _start(code[here])
    ]
    return bool(handlers) and not any(_same_way(code, at, here + 1, _resumes(code, at, h)) for h in handlers)


def _start(instruction: dis.Instruction) -> tuple[int | None, int | None]:
    positions = instruction.positions
    return (None, None) if positions is None else (positions.lineno, positions.col_offset)


def _resumes(code: Sequence[dis.Instruction], at: dict[int, int], handler: int) -> int:
    """Where a handler goes on after it has suppressed an exception: past its cleanup of the stack."""
    jump = next(i for i in code[handler:] if i.opname.startswith("POP_JUMP"))
    position = at[int(jump.argval)]
    while code[position].opname in ("POP_TOP", "POP_EXCEPT", *_SKIPPED):
        position += 1
    return position


def _same_way(code: Sequence[dis.Instruction], at: dict[int, int], one: int, other: int) -> bool:
    """Whether two positions run the same instructions up to where they meet or return."""
    for _ in code:
        one, other = _settled(code, at, one), _settled(code, at, other)
        a, b = code[one], code[other]
        if one == other or (a.opname, a.argval) != (b.opname, b.argval):
            return one == other
        if a.opname in _RETURNS:
            return True
        one, other = one + 1, other + 1
    return True


def _settled(code: Sequence[dis.Instruction], at: dict[int, int], position: int) -> int:
    """The next instruction that does something: unconditional jumps and the drop of an unused result do not."""
    while True:
        instruction = code[position]
        if instruction.opname.startswith(("JUMP_FORWARD", "JUMP_BACKWARD")):
            position = at[int(instruction.argval)]
        elif instruction.opname in ("POP_TOP", *_SKIPPED):
            position += 1
        else:
            return position
