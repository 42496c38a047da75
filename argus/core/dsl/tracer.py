"""The builder behind the DSL: the kernel under construction, its open scopes and its names."""

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
    """A statement list under construction. opener: the construct that opened it, such as `loop`."""

    def __init__(self, opener: str, span: Span) -> None:
        self.opener = opener
        self.span = span
        self.body: list[Stmt] = []


class Fill(Protocol):
    """A slot of a ring that is being filled: copies into it complete on its barrier."""

    @property
    def event(self) -> View:
        """The barrier of the slot."""
        ...

    def holds(self, view: View) -> bool:
        """Whether a view is of a buffer of this slot."""
        ...


class Agent:
    """The threads that run the statements under construction: the block's, or those of one agent of a role.

    threads: their number. agents: how many agents run this body, each with its own registers. number: the symbol of the
    agent's index, None for the block. thread: the symbol of the thread's index within the agent. counters: the
    declarations of counters, which `finish_body` puts at the start of the body. at_end: transformations of the
    finished body.
    """

    def __init__(self, name: str, threads: int, agents: int, number: Symbol | None, thread: Symbol) -> None:
        self.name = name
        self.threads = threads
        self.agents = agents
        self.number = number
        self.thread = thread
        self.counters: list[Stmt] = []
        self.at_end: list[Callable[[tuple[Stmt, ...]], tuple[Stmt, ...]]] = []

    def finish_body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """The body after the transformations of the constructs used in it, preceded by its counters."""
        for complete in self.at_end:
            body = complete(body)
        return (*self.counters, *body)


class Tracer:
    """One kernel under construction, for the duration of its trace.

    block: the agent that is the whole block. agent: the agent that runs the current statements. fills: the slots being
    filled, innermost last. at_end: actions after the function has returned, before the kernel is assembled. warps:
    the role of each warp that has one. barriers: the names of named barriers so far. parameters: the tensors, with
    the promises made so far. grouped: whether products join an open group. bound: the summation symbols and extents
    of the claim under construction; None outside a claim. formula_symbols: the bound variables of formulas, by
    wanted name.
    unwaited: copies that are left out of automatic waits.
    cluster: blocks of a cluster along each axis of the grid. rank: this block's rank in its cluster, None until the
    grid is declared.
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
        self.barriers: set[str] = set()
        self.parameters: list[Buffer] = []
        self.grouped = False
        self.at_end: list[Callable[[], None]] = []
        self.bound: list[tuple[Symbol, Index]] | None = None
        self.formula_symbols: dict[str, Symbol] = {}
        self.unwaited: set[Stmt] = set()
        self.cluster = cluster
        self.rank: Index | None = None
        self._names: dict[str, int] = {"thread": 1}

    def span(self) -> Span:
        return source_location.span_of(source_location.user_frame(), self.root)

    def emit(self, stmt: Stmt) -> None:
        self.scopes[-1].body.append(stmt)

    def name(self, kind: str) -> str:
        """A fresh name for a new object: that of the variable it is assigned to, else its kind and source line."""
        frame = source_location.user_frame()
        wanted = source_location.assigned_name(frame)
        if wanted is None:
            wanted = f"{kind}_{frame.f_lineno}" if frame is not None else kind
        return self.unique(wanted)

    def unique(self, wanted: str) -> str:
        """The wanted name, with a numeric suffix if it is taken."""
        count = self._names.get(wanted, 0) + 1
        self._names[wanted] = count
        return wanted if count == 1 else self.unique(f"{wanted}_{count}")

    def open(self, opener: str) -> Scope:
        """Begin a new innermost scope."""
        scope = Scope(opener, self.span())
        self.scopes.append(scope)
        return scope

    def close(self, scope: Scope) -> tuple[Stmt, ...]:
        """End the scope and return its statements. Raises E104 if `break` or `return` left an inner scope open."""
        if self.scopes[-1] is not scope:
            early_exit_fault(self.scopes[-1].opener, self.scopes[-1].span)
        self.scopes.pop()
        return tuple(scope.body)

    def leave(self, scope: Scope) -> tuple[Stmt, ...]:
        """`close` at the end of a `with` statement. Raises E104 if `break`, `continue` or `return` leaves its body."""
        frame = source_location.user_frame()
        if frame is not None and source_location.leaves_early(frame):
            early_exit_fault(scope.opener, scope.span)
        return self.close(scope)


def early_exit_fault(opener: str, span: Span) -> NoReturn:
    """Raise E104 at the construct that opened the scope."""
    fault(
        "E104",
        f"`{opener}` was left before its end",
        here="its body is left by `break`, `continue` or `return`",
        span=span,
        help="tracing leaves it for all iterations and threads; put the rest into `with when(...):`",
    )


_current: ContextVar[Tracer | None] = ContextVar("argus_tracer", default=None)


def current(what: str) -> Tracer:
    """The kernel being traced. Raises E105 outside a kernel. what: the caller, for the message."""
    tracer = _current.get()
    if tracer is None:
        fault("E105", f"`{what}` was called outside a kernel", help="call it from a function decorated with `@kernel`")
    return tracer


def is_tracing() -> bool:
    """Whether a kernel is being traced."""
    return _current.get() is not None


@contextmanager
def tracing(tracer: Tracer) -> Generator[None]:
    """Make `tracer` the current kernel, for the body of the `with` statement."""
    token = _current.set(tracer)
    try:
        yield
    finally:
        _current.reset(token)
