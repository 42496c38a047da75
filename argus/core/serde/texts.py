"""Names and words of a kernel that came as data: those that the language gives, and no others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

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
"""Names that the language makes of the author's variables, and the constructs that it calls by them."""
_FUNCTION = re.compile(r"[\w.<>]*")
_FOLDS = {"add", "mul", "max", "min", "last"}


def refused_texts(kernel: Kernel, things: Iterable[object]) -> Iterator[str]:
    """Why tracing could not have given these names and numbers to what a kernel is made of."""
    known = {buffer.name for buffer in kernel.parameters}
    made_known = [id(stmt) for stmt in kernel.prologue]
    for thing in things:
        why = _refused(thing, known)
        if why:
            yield why
        if _makes_known(thing) and id(thing) not in made_known:
            yield "makes barriers known after its prologue"


def _moves(copy: Copy) -> bool:
    """Whether the instruction is one of copies, between these memories, of whole elements."""
    operands = copy.atom.operands
    if copy.atom.mnk is not None or not {"source", "target"} <= operands.keys():
        return False
    spaces = operands["source"].space, operands["target"].space
    whole = copy.atom.vector_bits % copy.source.buffer.dtype.bits == 0
    return (
        spaces == (copy.source.buffer.space, copy.target.buffer.space) and whole and copy.atom.combine == copy.combine
    )


def _makes_known(thing: object) -> bool:
    named = thing.origin if isinstance(thing, Fence | Sync) else None
    return named is not None and named.construct == "barriers"


def _refused(thing: object, parameters: set[str]) -> str:
    match thing:
        case Buffer(name=text) | Origin(construct=text) | Role(name=text) | Sync(barrier=text):
            return "" if _WORDS.fullmatch(text) else "has a name that the language does not give"
        case TagOf(name=text):
            return "" if text == "" or _WORDS.fullmatch(text) else "has a name that the language does not give"
        case Tag(names=names):
            return "" if all(name.isidentifier() for name, _ in names) else "has a tag that is no identifier"
        case Frame(function=text, line=line, column=column, end_column=end):
            fine = _FUNCTION.fullmatch(text) and min(line, column, end) >= 0
            return "" if fine else "comes from no line of a file"
        case Op(name=name, args=args):
            op = ELEMENT_OPS.get(name)
            return "" if op is not None and op.arity == len(args) else "computes what no operation does"
        case Fold(op=name):
            return "" if name in _FOLDS else "folds by no operation"
        case Policy(name=name, args=args):
            return "" if ADVICE.get(name) == len(args) else "gives advice that there is not"
        case Mma(atom=atom):
            return "" if atom.mnk is not None else "multiplies by no matrix instruction"
        case Copy(cache=cache, combine=combine):
            return (
                ""
                if _moves(thing) and cache == "" and combine in (None, "add")
                else "copies in a way that there is not"
            )
        case Fence(scope=scope):
            return "" if scope == "cta" else "has a fence of another scope"
        case For(step=step, unroll=unroll):
            return "" if step != 0 and (unroll is None or unroll > 0) else "has a loop without a step"
        case Alloc(buffer=buffer, count=count):
            counted = (count is not None) == (buffer.space == "barrier")
            return "" if counted else "counts arrivals at what is no barrier"
        case Read(array=name):
            return "" if name in parameters else "reads integers of no parameter"
        case Held() | Atomic():
            return "has a term that no statement of the language gives"
        case _:
            return ""
