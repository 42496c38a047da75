"""The number of the wave that runs a line: an integer of the kernel, the same for all threads of a wave."""

from __future__ import annotations

from argus.core import algebra
from argus.core.dsl.handles import Int
from argus.core.dsl.tracer import current
from argus.core.index import Index


class Wave(Int):
    """`wave`: waves count from 0 within the block, or within the agent of a role.

    A branch on it may hold barriers, which pair by count. Raises E105 outside a kernel.
    """

    __slots__ = ()

    def __init__(self) -> None:
        pass

    @property
    def node(self) -> Index:
        tracer = current("wave")
        return algebra.floordiv(algebra.sym(tracer.agent.thread), tracer.target.unit)


wave = Wave()
