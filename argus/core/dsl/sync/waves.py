"""`wave`: the index of the executing wave, a symbolic integer."""

from __future__ import annotations

from argus.core import algebra
from argus.core.dsl.handles import Int
from argus.core.dsl.tracer import current
from argus.core.index import Index


class Wave(Int):
    """`wave`: the index of the executing wave within the block, or within the agent of a role.

    A branch on it may contain barriers on gfx942, where a block barrier counts arrivals of waves, whichever statements
    execute them. Raises E105 outside a kernel.
    """

    __slots__ = ()

    def __init__(self) -> None:
        pass

    @property
    def node(self) -> Index:
        tracer = current("wave")
        return algebra.floordiv(algebra.sym(tracer.agent.thread), tracer.target.unit)


wave = Wave()
