"""Checks names, operations and options of a deserialised kernel against those that the language produces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from argus.core.check.folds import FOLD_OPS
from argus.core.elementwise import ELEMENT_OPS
from argus.core.index import Held, Read
from argus.core.ir import (
    ADVICE,
    Alloc,
    Atomic,
    Buffer,
    Copy,
    Fence,
    Fold,
    For,
    Kernel,
    Mma,
    Op,
    Origin,
    Policy,
    Role,
    Sync,
    Tag,
    TagOf,
)
from argus.core.span import Frame

_WORDS = re.compile(r"[\w.]+( [\w.]+)*")
"""Names that the language derives from variables and constructs."""
_FUNCTION = re.compile(r"[\w.<>]*")
_FOLDS = frozenset(FOLD_OPS)


def text_violations(kernel: Kernel, things: Iterable[object]) -> Iterator[str]:
    """Reasons why tracing cannot have produced names and options of a kernel; `things`: all its objects."""
    parameters = {buffer.name for buffer in kernel.parameters}
    prologue = [id(stmt) for stmt in kernel.prologue]
    for thing in things:
        why = _violation(thing, parameters)
        if why:
            yield why
        if _publishes_barriers(thing) and id(thing) not in prologue:
            yield "publishes the initialisation of barriers outside its prologue"


def _moves(copy: Copy) -> bool:
    """Whether the instruction copies whole elements between these memories."""
    operands = copy.atom.operands
    if copy.atom.mnk is not None or not {"source", "target"} <= operands.keys():
        return False
    spaces = operands["source"].space, operands["target"].space
    whole = copy.atom.vector_bits % copy.source.buffer.dtype.bits == 0
    return (
        spaces == (copy.source.buffer.space, copy.target.buffer.space) and whole and copy.atom.combine == copy.combine
    )


def _publishes_barriers(thing: object) -> bool:
    """Whether it is a fence or a barrier that the construct `barriers` added after initialisation."""
    named = thing.origin if isinstance(thing, Fence | Sync) else None
    return named is not None and named.construct == "barriers"


def _violation(thing: object, parameters: set[str]) -> str:
    """Why tracing cannot have produced an object with this name or option; empty if it can."""
    match thing:
        case Buffer(name=text) | Origin(construct=text) | Role(name=text) | Sync(barrier=text):
            return "" if _WORDS.fullmatch(text) else "has a name that the language does not produce"
        case TagOf(name=text):
            return "" if text == "" or _WORDS.fullmatch(text) else "has a name that the language does not produce"
        case Tag(names=names):
            return "" if all(name.isidentifier() for name, _ in names) else "has a tag whose name is not an identifier"
        case Frame(function=text, line=line, column=column, end_column=end):
            fine = _FUNCTION.fullmatch(text) and min(line, column, end) >= 0
            return "" if fine else "has an invalid source location"
        case Op(name=name, args=args):
            op = ELEMENT_OPS.get(name)
            return "" if op is not None and op.arity == len(args) else "uses an unknown element-wise operation"
        case Fold(op=name):
            return "" if name in _FOLDS else "reduces by an unknown operation"
        case Policy(name=name, args=args):
            return "" if ADVICE.get(name) == len(args) else "gives unknown advice"
        case Mma(atom=atom):
            return "" if atom.mnk is not None else "multiplies with an instruction that is not a matrix instruction"
        case Copy(cache=cache, combine=combine):
            return (
                ""
                if _moves(thing) and cache == "" and combine in (None, "add")
                else "has a copy with an unsupported instruction, cache hint or reduction"
            )
        case Fence(scope=scope):
            return "" if scope == "cta" else "has a fence of another scope than the block"
        case For(step=step, unroll=unroll):
            return "" if step != 0 and (unroll is None or unroll > 0) else "has a loop whose step or unroll factor is 0"
        case Alloc(buffer=buffer, count=count):
            counted = (count is not None) == (buffer.space == "barrier")
            return "" if counted else "has an arrival count on something other than a barrier, or a barrier without one"
        case Read(array=name):
            return "" if name in parameters else "reads integers of a tensor that is not a parameter"
        case Held() | Atomic():
            return "has a term that no statement of the language produces"
        case _:
            return ""
