"""Writes supertiles of a block number that a kernel computes by hand in the form that `supertiles` recognises.

A number within a band may be written as `b % D`, and a row as `r % g`, instead of `b - D * (b // D)` and
`r - g * (r // g)`. These are equal for floor division by any divisor but zero, and that divisors are positive is an
obligation either way (`divisors`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from attrs import evolve

from argus.core import algebra
from argus.core.check import expressions
from argus.core.index import Bin, Const, Index, Node, Symbol
from argus.core.ir import Kernel, Roles, walk
from argus.core.ir.rewrite import NodeMap, rewrite_stmt
from argus.core.proof.outputs.supertiles import supertiles
from argus.core.walk import fold, rebuild, symbols, topological


def with_supertile_forms(kernel: Kernel) -> Kernel:
    """The kernel with such remainders replaced, if they are what hides supertiles; otherwise the kernel itself."""
    roots = [root for stmt in walk(kernel.body) for root in expressions(stmt)]
    for block, count in zip(kernel.blocks, kernel.grid, strict=True):
        own: list[Node] = [root for root in roots if block in symbols(root)]
        names = _remainders(own, block)
        if not names:
            continue
        written = [_written(root, names) for root in own]
        found = supertiles(block, count, written)
        if found is not None and any(node is found.column for node in topological(written)):
            return _rewritten(kernel, NodeMap(names))
    return kernel


def _remainders(roots: Sequence[Node], block: Symbol) -> Mapping[Node, Index]:
    """For each remainder of a number of the block by a divisor that is no constant, the difference that it equals."""
    names: dict[Node, Index] = {}
    for node in topological(roots):
        if isinstance(node, Bin) and node.op == "%" and not isinstance(node.right, Const) and block in symbols(node):
            dividend, divisor = (cast(Index, _written(part, names)) for part in (node.left, node.right))
            names[node] = algebra.sub(dividend, algebra.mul(divisor, algebra.floordiv(dividend, divisor)))
    return names


def _written(root: Node, names: Mapping[Node, Index]) -> Node:
    return fold(root, lambda node, parts: names.get(node) or rebuild(node, parts))


def _rewritten(kernel: Kernel, names: NodeMap) -> Kernel:
    roles = None if kernel.roles is None else cast(Roles, rewrite_stmt(kernel.roles, names))
    prologue, epilogue = (
        tuple(rewrite_stmt(stmt, names) for stmt in part) for part in (kernel.prologue, kernel.epilogue)
    )
    return evolve(kernel, prologue=prologue, roles=roles, epilogue=epilogue)
