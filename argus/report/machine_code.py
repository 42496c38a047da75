"""What was read from a kernel's machine code, as rows of text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from attrs import asdict

from argus.core.span import Frame, Span
from argus.emit.cuda.machine_code import LoopCode, MachineCode, Overlap


def machine_code_rows(code: MachineCode) -> Iterator[tuple[str, str]]:
    """(label, text) of each row."""
    unread = "; some jumps were not followed" if code.indirect else ""
    yield "instructions", f"{code.instructions:,}{unread}"
    for loop in code.loops:
        yield "loop", f"{place(loop.loop)}: {_mix(loop)}"
    for overlap in code.overlaps:
        yield "overlap", f"{place(overlap.wait)}: {_ahead(overlap)}"


def _mix(loop: LoopCode) -> str:
    return (
        f"{loop.instructions} instructions, of them {loop.products} wgmma, {loop.arithmetic} floating-point "
        f"({loop.exponentials} exponentials), {loop.memory} memory, {loop.moves} moves, {loop.control} control"
    )


def _ahead(overlap: Overlap) -> str:
    return (
        f"ahead of the wait {overlap.exponentials_ahead} of {overlap.exponentials} exponentials, "
        f"{overlap.arithmetic_ahead} of {overlap.arithmetic} floating-point instructions"
    )


def machine_code_json(code: MachineCode) -> dict[str, object]:
    """The key `machine_code` of a kernel of the schema `argus.build/1`. A location is a list of `FILE:LINE`, the
    statement first, then its callers.
    """
    data = asdict(code, value_serializer=lambda _, __, value: _frames(value) if isinstance(value, Span) else value)
    # `asdict` passes the fields of classes to the function, and not the elements of a tuple.
    return {**data, "added_waits": [_frames(each) for each in code.added_waits]}


def _frames(span: Span) -> list[str]:
    return [f"{frame.file}:{frame.line}" for frame in span.frames]


def place(span: Span) -> str:
    """FILE:LINE of a statement and of its caller."""
    return ", from ".join(_short(frame) for frame in span.frames[:2]) or "no source"


def _short(frame: Frame) -> str:
    return f"{PurePath(frame.file).name}:{frame.line}"
