"""Per-agent counters of the uses of a ring or of `Turns`."""

from __future__ import annotations

from argus.core import algebra
from argus.core.dsl.tracer import Agent, Tracer
from argus.core.dtype import i32
from argus.core.index import Index, Symbol
from argus.core.ir import Advance, Alloc, Buffer, Let, Origin, Peek, Staged, View
from argus.core.layout import Layout


class UseCounters:
    """The counters of one construct; each is declared for an agent at its first use there."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._made: dict[tuple[Agent, str], Buffer] = {}

    def _buffer(self, tracer: Tracer, use: str) -> Buffer:
        key = (tracer.agent, use)
        if key not in self._made:
            span = tracer.span()
            name = tracer.unique(f"{self._name}_{use}")
            layout = Staged(Layout(1, 0))
            made = Buffer(name, "counter", i32, (), layout, align=4, owner=tracer.agent.name, span=span)
            tracer.agent.counters.append(Alloc(made, span=span))
            self._made[key] = made
        return self._made[key]

    def read(self, tracer: Tracer, use: str, origin: Origin) -> tuple[Let, Index]:
        """Emit a read of a counter; returns the statement and the symbol that it binds."""
        symbol = Symbol(tracer.unique(f"{self._name}_use"), "fresh", 0, None)
        found = Let(symbol, Peek(View(self._buffer(tracer, use), (), ())), span=tracer.span(), origin=origin)
        tracer.emit(found)
        return found, algebra.sym(symbol)

    def advance(self, tracer: Tracer, use: str, by: Index, origin: Origin) -> None:
        """Emit an increment of a counter."""
        tracer.emit(Advance(self._buffer(tracer, use), by, span=tracer.span(), origin=origin))
