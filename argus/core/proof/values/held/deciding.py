"""Which tiles a kernel decides something by: numbers of a type of floats on which a choice or an integer depends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from math import isinf

from argus.core.dtype import DType
from argus.core.ir import Buffer, Cast, Compare, Copy, Elem, Fold, Get, Kernel, Lit, Map, Mma, Op, Stmt, walk
from argus.core.ir.element_walk import dtype_of, gets, nodes

STEPS = ("ceil", "floor", "philox", "round", "round_bf16", "sign")
"""Operations whose result for a number may be quite another than for one next to it."""
_EXACT = frozenset(("abs", "clamp", "max", "max_nan", "min", "min_nan", "neg", "relu", *STEPS))
"""Operations whose results a type has if it has the operands."""
_KERNELS = 16


@lru_cache(maxsize=_KERNELS)
def deciding(kernel: Kernel, later: frozenset[Buffer] = frozenset()) -> frozenset[Buffer]:
    """The buffers from which numbers come, over whatever statements, by which a statement decides.

    later: the kernel's tensors by whose numbers later launches of a program decide.
    """
    stmts = list(walk(kernel.body))
    found = {get.view.buffer for stmt in stmts if isinstance(stmt, Map) for get in _decided_by(stmt.elem)}
    return frozenset(_sources(stmts, found | later))


def _sources(stmts: Sequence[Stmt], found: set[Buffer]) -> set[Buffer]:
    """These buffers, and those from which their numbers come."""
    before: dict[Buffer, set[Buffer]] = {}
    for stmt in stmts:
        for source, target in _moved(stmt):
            before.setdefault(target, set()).add(source)
    stack = list(found)
    while stack:
        new = before.get(stack.pop(), set()) - found
        found |= new
        stack.extend(new)
    return found


def over_the_reals(kernel: Kernel, later: frozenset[Buffer] = frozenset()) -> tuple[Stmt, ...]:
    """The statements that compute floats by which something is decided: rounding may decide it otherwise.

    Tests for infinities do not count: no rounding makes a number infinite. later: as for `deciding`.
    """
    stmts = list(walk(kernel.body))
    tests = [tuple(_deciding(stmt.elem, infinite=False)) if isinstance(stmt, Map) else () for stmt in stmts]
    found = {get.view.buffer for own in tests for each in own for get in gets(each)}
    sources = _sources(stmts, found | later)
    return tuple(
        stmt
        for stmt, own in zip(stmts, tests, strict=True)
        if any(map(_computes, own)) or not sources.isdisjoint(_computed_targets(stmt))
    )


def decided_later(launches: Sequence[tuple[Kernel, Mapping[Buffer, Buffer]]]) -> tuple[frozenset[Buffer], ...]:
    """Of each launch of a program, its tensors by whose numbers later ones decide.

    launches: each kernel, and the program's tensors for its own.
    """
    decided, found = set[Buffer](), list[frozenset[Buffer]]()
    for kernel, arguments in reversed(launches):
        own = frozenset(buffer for buffer, given in arguments.items() if given in decided)
        found.append(own)
        decided |= {given for buffer, given in arguments.items() if buffer in deciding(kernel, own)}
    return tuple(reversed(found))


def _decided_by(elem: Elem) -> Iterator[Get]:
    for each in _deciding(elem):
        yield from gets(each)


def _deciding(elem: Elem, *, infinite: bool = True) -> Iterator[Elem]:
    """What an expression decides something by. infinite: also what is only compared with an infinity or itself."""
    for node in nodes(elem):
        match node:
            case Compare(left=left, right=right) if _is_float(dtype_of(left) or dtype_of(right)):
                if infinite or not (left is right or _is_infinite(left) or _is_infinite(right)):
                    yield from (left, right)
            case Cast(dtype=dtype, arg=arg) if dtype.family != "float" and _is_float(dtype_of(arg)):
                yield arg
            case Op(name=name, args=args) if name in STEPS:
                yield from args
            case _:
                continue


def _is_infinite(elem: Elem) -> bool:
    return isinstance(elem, Lit) and isinf(elem.value)


def _computes(elem: Elem) -> bool:
    """Whether an expression rounds floats, other than to another type."""
    ops = (node for node in nodes(elem) if isinstance(node, Op))
    return any(op.name not in _EXACT and _is_float(dtype_of(op)) for op in ops)


def _computed_targets(stmt: Stmt) -> Iterator[Buffer]:
    """What a statement computes of floats by operations that round."""
    match stmt:
        case Map(target=target, elem=elem) if _is_float(target.buffer.dtype) and _computes(elem):
            yield target.buffer
        case Fold(target=target, op="add" | "mul") | Mma(target=target) if _is_float(target.buffer.dtype):
            yield target.buffer
        case Copy(target=target, combine=combine) if combine is not None and _is_float(target.buffer.dtype):
            yield target.buffer
        case _:
            return


def _is_float(dtype: DType | None) -> bool:
    return dtype is None or dtype.family == "float"


def _moved(stmt: Stmt) -> Iterator[tuple[Buffer, Buffer]]:
    """What a statement reads, each with what it computes of it."""
    match stmt:
        case Copy(source=source, target=target) | Fold(source=source, target=target):
            yield source.buffer, target.buffer
        case Map(target=target, elem=elem):
            yield from ((get.view.buffer, target.buffer) for get in gets(elem))
        case Mma(target=target, a=a, b=b):
            yield from ((each.buffer, target.buffer) for each in (a, b))
        case _:
            return
