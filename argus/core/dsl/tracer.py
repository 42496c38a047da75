"""The builder behind the DSL: an open kernel, its scopes and its names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import CodeType

from argus.core.dsl import place
from argus.core.dsl.faults import fault
from argus.core.index import Index, Symbol
from argus.core.ir import Stmt
from argus.core.span import Span
from argus.core.target import Target


class Scope:
    """A statement list that is being written, and what opened it."""

    def __init__(self, opener: str, span: Span) -> None:
        self.opener = opener
        self.span = span
        self.body: list[Stmt] = []
        self.closed = False


class Tracer:
    """One kernel under construction; lives as long as the traced call."""

    def __init__(self, target: Target, threads: int, root: CodeType) -> None:
        self.target = target
        self.threads = threads
        self.root = root
        self.scopes = [Scope("kernel", place.span_of_function(root))]
        self.grid: tuple[Index, ...] = ()
        self.blocks: tuple[Symbol, ...] = ()
        self.thread = Symbol("thread", "thread", 0, threads - 1)
        self._names: dict[str, int] = {}

    def span(self) -> Span:
        return place.span_of(place.user_frame(), self.root)

    def emit(self, stmt: Stmt) -> None:
        self.scopes[-1].body.append(stmt)

    def name(self, kind: str) -> str:
        """A fresh name for what is being made: the variable it is assigned to, else its kind and line."""
        frame = place.user_frame()
        wanted = place.assigned_name(frame)
        if wanted is None:
            wanted = f"{kind}_{frame.f_lineno}" if frame is not None else kind
        return self.unique(wanted)

    def unique(self, wanted: str) -> str:
        count = self._names.get(wanted, 0) + 1
        self._names[wanted] = count
        return wanted if count == 1 else self.unique(f"{wanted}_{count}")

    def open(self, opener: str) -> Scope:
        scope = Scope(opener, self.span())
        self.scopes.append(scope)
        return scope

    def close(self, scope: Scope) -> tuple[Stmt, ...]:
        """The statements of the scope; a scope inside that is still open was left by `break` or `return`."""
        if self.scopes[-1] is not scope:
            left = self.scopes[-1]
            fault(
                "E104",
                f"`{left.opener}` was left before its end",
                here="this scope is still open",
                span=left.span,
                help="`break`, `continue` and `return` cannot leave a traced loop; use `when(...)` around the rest",
            )
        self.scopes.pop()
        scope.closed = True
        return tuple(scope.body)


_current: ContextVar[Tracer | None] = ContextVar("argus_tracer", default=None)


def current(what: str) -> Tracer:
    """The kernel being traced. Raises E105 outside of one."""
    tracer = _current.get()
    if tracer is None:
        fault("E105", f"`{what}` was called outside a kernel", help="call it from a function decorated with `@kernel`")
    return tracer


@contextmanager
def tracing(tracer: Tracer) -> Iterator[None]:
    token = _current.set(tracer)
    try:
        yield
    finally:
        _current.reset(token)
