"""The builder behind the DSL: an open kernel, its scopes and its names."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from types import CodeType
from typing import NoReturn, Protocol

from argus.core.dsl import source_location
from argus.core.dsl.faults import fault
from argus.core.index import Index, Symbol
from argus.core.ir import Buffer, Stmt, View
from argus.core.span import Span
from argus.core.target import Target


class Scope:
    """A statement list that is being written, and what opened it."""

    def __init__(self, opener: str, span: Span) -> None:
        self.opener = opener
        self.span = span
        self.body: list[Stmt] = []


class Fill(Protocol):
    """A slot that is being filled: copies into it complete on its barrier."""

    @property
    def event(self) -> View: ...

    def holds(self, view: View) -> bool:
        """Whether a view is one of this slot."""
        ...


class Agent:
    """The threads that run the statements being written: the block's, or those of one agent of a role.

    agents: how many run this body, each on its own registers. number and thread: the symbols of the role; None for
    the block, whose threads are the kernel's. counters: declared at the start of the body when it is closed.
    """

    def __init__(self, name: str, threads: int, agents: int, number: Symbol | None, thread: Symbol) -> None:
        self.name = name
        self.threads = threads
        self.agents = agents
        self.number = number
        self.thread = thread
        self.counters: list[Stmt] = []
        self.at_end: list[Callable[[tuple[Stmt, ...]], tuple[Stmt, ...]]] = []

    def finished(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """The body as the constructs used in it complete it, its counters first."""
        for complete in self.at_end:
            body = complete(body)
        return (*self.counters, *body)


class Tracer:
    """One kernel under construction; lives as long as the traced call.

    block: the threads of the whole block; agent: who runs what is being written. fills: the slots being filled,
    innermost last. at_end: run when the function has returned, before the kernel is put together.
    warps: the role of each warp that has one. parameters: the tensors, with what has been promised of them so far.
    grouped: products join one group, which a commit closes.
    bound: the symbols that a claim being written speaks of all values of; None outside of one.
    cluster: blocks along each axis of a cluster, as the kernel is declared; rank: of this block among those of its
    cluster, None until the grid is declared.
    """

    def __init__(self, target: Target, threads: int, root: CodeType, cluster: tuple[int, ...] = (1,)) -> None:
        self.target = target
        self.threads = threads
        self.root = root
        self.scopes = [Scope("kernel", source_location.span_of_function(root))]
        self.grid: tuple[Index, ...] = ()
        self.blocks: tuple[Symbol, ...] = ()
        self.thread = Symbol("thread", "thread", 0, threads - 1)
        self.block = Agent("", threads, 1, None, self.thread)
        self.agent = self.block
        self.fills: list[Fill] = []
        self.warps: dict[int, str] = {}
        self.parameters: list[Buffer] = []
        self.grouped = False
        self.at_end: list[Callable[[], None]] = []
        self.bound: list[tuple[Symbol, Index]] | None = None
        self.cluster = cluster
        self.rank: Index | None = None
        self._names: dict[str, int] = {"thread": 1}

    def span(self) -> Span:
        return source_location.span_of(source_location.user_frame(), self.root)

    def emit(self, stmt: Stmt) -> None:
        self.scopes[-1].body.append(stmt)

    def name(self, kind: str) -> str:
        """A fresh name for what is being made: the variable it is assigned to, else its kind and line."""
        frame = source_location.user_frame()
        wanted = source_location.assigned_name(frame)
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
            left_early(self.scopes[-1].opener, self.scopes[-1].span)
        self.scopes.pop()
        return tuple(scope.body)

    def leave(self, scope: Scope) -> tuple[Stmt, ...]:
        """`close` at the end of a `with` statement, which must be reached by falling off the end of its body."""
        frame = source_location.user_frame()
        if frame is not None and source_location.leaves_early(frame):
            left_early(scope.opener, scope.span)
        return self.close(scope)


def left_early(opener: str, span: Span) -> NoReturn:
    """Raise E104 at what opened the scope."""
    fault(
        "E104",
        f"`{opener}` was left before its end",
        here="its body is left by `break`, `continue` or `return`",
        span=span,
        help="Python leaves while tracing, for every iteration and thread alike; put the rest into `with when(...):`",
    )


_current: ContextVar[Tracer | None] = ContextVar("argus_tracer", default=None)


def current(what: str) -> Tracer:
    """The kernel being traced. Raises E105 outside of one."""
    tracer = _current.get()
    if tracer is None:
        fault("E105", f"`{what}` was called outside a kernel", help="call it from a function decorated with `@kernel`")
    return tracer


def is_tracing() -> bool:
    """Whether a kernel is being traced."""
    return _current.get() is not None


@contextmanager
def tracing(tracer: Tracer) -> Generator[None]:
    token = _current.set(tracer)
    try:
        yield
    finally:
        _current.reset(token)
