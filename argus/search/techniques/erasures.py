"""Erasures: what the IR of a kernel says of a technique is taken out. The result is verified like any other kernel."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from attrs import evolve

from argus.core.ir import Alloc, For, Kernel, Policy, Role, Roles, walk
from argus.core.ir.advice import PolicyName
from argus.core.ir.storage import Staged
from argus.core.ir.surgery import replace_objects, with_stmts

Erasure = Callable[[Kernel], Kernel | None]
"""The kernel without a technique; None if it does not have it."""


def _without_advice(*names: PolicyName) -> Erasure:
    def erase(kernel: Kernel) -> Kernel | None:
        found = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Policy) and stmt.name in names]
        made = kernel
        for stmt in found:
            made = with_stmts(made, stmt, ())
        return made if found else None

    return erase


def _exchanged(kernel: Kernel, exchange: Mapping[int, Any]) -> Kernel | None:
    return replace_objects(kernel, exchange) if exchange else None


def _without_unrolling(kernel: Kernel) -> Kernel | None:
    """No loop asks to be unrolled; loops in loops one after the other, as each replacement makes new loops."""
    made = kernel
    while (loop := next((each for each in walk(made.body) if isinstance(each, For) and each.unroll), None)) is not None:
        made = with_stmts(made, loop, (evolve(loop, unroll=None),))
    return None if made is kernel else made


def _without_swizzles(kernel: Kernel) -> Kernel | None:
    """No swizzles, nor the degrees of bank conflicts that were declared of the layouts with them."""
    buffers = [stmt.buffer for stmt in walk(kernel.body) if isinstance(stmt, Alloc)]
    swizzled = ((each, each.layout) for each in buffers if isinstance(each.layout, Staged) and each.layout.swizzle)
    return _exchanged(
        kernel, {id(each): evolve(each, layout=evolve(layout, swizzle=None), banks=None) for each, layout in swizzled}
    )


def _without_registers_of_roles(kernel: Kernel) -> Kernel | None:
    """No role asks for registers of its own."""
    roles: Collection[Role] = () if not isinstance(kernel.roles, Roles) else kernel.roles.roles
    return _exchanged(kernel, {id(role): evolve(role, registers=None) for role in roles if role.registers is not None})


ERASURES: Mapping[str, Erasure] = {
    "bank-conflict-mitigation": _without_swizzles,
    "loop-unrolling": _without_unrolling,
    "sched-barriers": _without_advice("sched_barrier", "sched_group_barrier"),
    "wave-priority": _without_advice("priority"),
    "register-reallocation": _without_registers_of_roles,
    "xcd-remap": _without_advice("remap_xcd"),
}
"""By the name of the transformation that introduces the technique, in the order in which it would be applied."""
