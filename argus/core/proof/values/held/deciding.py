"""Which tiles a kernel decides something by: numbers of a type of floats on which a choice or an integer depends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from argus.core.dtype import DType
from argus.core.ir import Buffer, Cast, Compare, Copy, Elem, Fold, Get, Kernel, Map, Mma, Op, Stmt, walk
from argus.core.ir.element_walk import dtype_of, gets, nodes

STEPS = ("ceil", "floor", "philox", "round", "round_bf16", "sign")
"""Operations whose result for a number may be quite another than for one next to it."""
_KERNELS = 16


@lru_cache(maxsize=_KERNELS)
def deciding(kernel: Kernel, later: frozenset[Buffer] = frozenset()) -> frozenset[Buffer]:
    """The buffers from which numbers come, over whatever statements, by which a statement decides.

    later: the kernel's tensors by whose numbers later launches of a program decide.
    """
    stmts = list(walk(kernel.body))
    found = {get.view.buffer for stmt in stmts if isinstance(stmt, Map) for get in _decided_by(stmt.elem)} | later
    before: dict[Buffer, set[Buffer]] = {}
    for stmt in stmts:
        for source, target in _moved(stmt):
            before.setdefault(target, set()).add(source)
    stack = list(found)
    while stack:
        new = before.get(stack.pop(), set()) - found
        found |= new
        stack.extend(new)
    return frozenset(found)


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
    for node in nodes(elem):
        match node:
            case Compare(left=left, right=right) if _is_float(dtype_of(left) or dtype_of(right)):
                yield from (*gets(left), *gets(right))
            case Cast(dtype=dtype, arg=arg) if dtype.family != "float" and _is_float(dtype_of(arg)):
                yield from gets(arg)
            case Op(name=name) if name in STEPS:
                yield from gets(node)
            case _:
                continue


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
