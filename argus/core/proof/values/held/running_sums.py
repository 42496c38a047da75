"""Statements that add integers to a running sum in registers."""

from __future__ import annotations

from argus.core.ir import Buffer, Get, Map, Op
from argus.core.ir.element_walk import gets, nodes


def is_integer(buffer: Buffer) -> bool:
    return buffer.dtype.family == "int"


def is_running_sum(stmt: Map) -> bool:
    """Whether a statement adds integers of one type to what its target holds, and does nothing else.

    Such a sum wraps around, so that it has the value of the exact one wherever that fits (`integer_sums`).
    """
    target, read = stmt.target.buffer, gets(stmt.elem)
    added = all(isinstance(each, Get) or (isinstance(each, Op) and each.name == "add") for each in nodes(stmt.elem))
    alike = all(each.view.buffer.dtype == target.dtype for each in read)
    return is_integer(target) and added and alike and any(each.view.buffer is target for each in read)
