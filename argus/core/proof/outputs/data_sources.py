"""The tensors whose elements a stored value can be made of, by the statements that move and compute data."""

from __future__ import annotations

from collections.abc import Iterator

from argus.core.ir import Buffer, Copy, Fold, Kernel, Map, Mma, Stmt, walk
from argus.core.ir.element_walk import gets


def data_sources(kernel: Kernel, target: Buffer) -> frozenset[Buffer]:
    """The buffers from which data can reach a buffer, itself only if it is read for that.

    Every copy, map, fold and product counts, in whichever order they run, so that no source is missed. Integers that
    only say where an element lies, or whether it is taken, are no sources.
    """
    moves = [move for stmt in walk(kernel.body) for move in _moves(stmt)]
    found: set[Buffer] = set()
    fresh = {target}
    while fresh:
        fresh = {source for to, source in moves if to in fresh} - found
        found |= fresh
    return frozenset(found)


def _moves(stmt: Stmt) -> Iterator[tuple[Buffer, Buffer]]:
    """(target, source) of each piece of data that a statement moves or computes with."""
    match stmt:
        case Copy(source=source, target=target) | Fold(source=source, target=target):
            yield target.buffer, source.buffer
        case Map(target=target, elem=elem):
            yield from ((target.buffer, get.view.buffer) for get in gets(elem))
        case Mma(target=target, a=a, b=b):
            yield from ((target.buffer, operand.buffer) for operand in (a, b))
        case _:
            pass
