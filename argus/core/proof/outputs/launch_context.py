"""Rewrites each kernel of a program over the program's sizes; every launch assumes what any launch assumes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TypeVar, cast, get_args

from attrs import evolve, fields, frozen

from argus.core.algebra import TRUE
from argus.core.check.reads import written_tensors
from argus.core.index import Cond, Index, Read, Symbol
from argus.core.ir import (
    Assume,
    Atomic,
    Buffer,
    Claim,
    Elem,
    Kernel,
    Launch,
    Peek,
    Policy,
    Program,
    Role,
    Stmt,
    Strided,
    TagOf,
    Test,
    View,
    walk,
)
from argus.core.proof.dataflow.timeline import is_checkable
from argus.core.values.expr import Expr
from argus.core.values.rewriting import substitute as substitute_values
from argus.core.walk import substitute, topological

T = TypeVar("T")
_PARTS = (*(part for union in (Stmt, Elem, Test, Claim) for part in get_args(union)), Atomic, Peek, Role, TagOf, View)
_NODES = (*get_args(Index), *get_args(Cond))


@frozen(eq=False)
class LaunchContext:
    """One launch. kernel: over the program's sizes. arguments: the program's tensor for each kernel parameter."""

    launch: Launch
    kernel: Kernel
    arguments: Mapping[Buffer, Buffer]


@frozen(eq=False)
class _Substitution:
    """sizes: the kernel's sizes in terms of the program's. buffers: its parameters, with extents in those terms."""

    sizes: Mapping[Symbol, Index]
    buffers: Mapping[Buffer, Buffer]

    def of(self, value: T) -> T:
        return cast(T, self._of(value))

    def _of(self, value: object) -> object:
        if isinstance(value, Buffer):
            return self.buffers.get(value, value)
        if isinstance(value, tuple):
            return tuple(self._of(each) for each in cast("tuple[object, ...]", value))
        if isinstance(value, Expr):
            return substitute_values(value, self.sizes)
        if isinstance(value, _NODES):
            return substitute(cast(Index, value), self.sizes)
        if isinstance(value, _PARTS):
            return evolve(value, **{each.name: self._of(getattr(value, each.name)) for each in fields(type(value))})
        return value


def launch_contexts(program: Program) -> tuple[LaunchContext, ...]:
    """The launches of a program, in order. Each may use what any of them assumes about the program's sizes."""
    separate: list[LaunchContext] = []
    written = set[Buffer]()
    stored = frozenset(
        launch.arguments[each.name] for launch in program.launches for each in written_tensors(launch.kernel)
    )
    for launch in program.launches:
        made = _launch_context(program, launch, written)
        separate.append(evolve(made, kernel=_with_early_reads(made, written, stored)) if separate else made)
        written |= {launch.arguments[buffer.name] for buffer in written_tensors(launch.kernel)}
    assumed: dict[Cond, Assume] = {}
    for each in separate:
        for stmt in walk(each.kernel.body):
            if isinstance(stmt, Assume) and stmt.cond is not TRUE and is_checkable(stmt.cond, assumed):
                assumed.setdefault(stmt.cond, stmt)
    return tuple(evolve(each, kernel=_with_assumptions(each.kernel, assumed)) for each in separate)


def _launch_context(program: Program, launch: Launch, written: Collection[Buffer]) -> LaunchContext:
    """written: by earlier launches; a caller's promise does not hold for their integers."""
    kernel, sizes = launch.kernel, dict(launch.sizes)
    fresh = {name for name, buffer in launch.arguments.items() if buffer not in written}
    promised = {buffer: {buffer.name, *_read_by_promise(buffer)} <= fresh for buffer in kernel.parameters}
    buffers = {buffer: _resized(buffer, sizes, promised=promised[buffer]) for buffer in kernel.parameters}
    moved = _Substitution(sizes, buffers)
    made = evolve(
        kernel,
        parameters=tuple(buffers.values()),
        sizes=program.sizes,
        grid=moved.of(kernel.grid),
        prologue=moved.of(kernel.prologue),
        roles=None if kernel.roles is None else moved.of(kernel.roles),
        epilogue=moved.of(kernel.epilogue),
    )
    return LaunchContext(launch, made, {made: launch.arguments[buffer.name] for buffer, made in buffers.items()})


def _with_early_reads(made: LaunchContext, before: Collection[Buffer], stored: Collection[Buffer]) -> Kernel:
    """The kernel with the numbers of the parameters that it may read ahead of its wait, if it asks for that.

    before, stored: the tensors that earlier launches write, and those that any launch does. Parameters that are read or
    written by no earlier launch, and not written by this one, hold what they held when the program began. Integers of
    which something is promised are checked ahead of the program if no launch writes what the promises read, else just
    ahead of the launch, and must not be read before.
    """
    kernel, own = made.kernel, written_tensors(made.kernel)
    if not any(isinstance(stmt, Policy) and stmt.name == "early_reads" for stmt in kernel.prologue):
        return kernel
    named = {buffer.name: tensor for buffer, tensor in made.arguments.items()}
    promised = [each for each in kernel.parameters if each.promise is not TRUE]
    asked = {named[name] for each in promised for name in (each.name, *_read_by_promise(each))}
    kept = () if asked & set(stored) else _unwritten(made, {*before, *(made.arguments[each] for each in own)})
    found = tuple(
        evolve(stmt, args=kept) if isinstance(stmt, Policy) and stmt.name == "early_reads" else stmt
        for stmt in kernel.prologue
    )
    return evolve(kernel, prologue=found)


def _unwritten(made: LaunchContext, written: Collection[Buffer]) -> tuple[int, ...]:
    """The numbers of the parameters whose tensors are none of these."""
    every = enumerate(made.kernel.parameters)
    return tuple(number for number, each in every if made.arguments[each] not in written)


def _read_by_promise(buffer: Buffer) -> Iterator[str]:
    return (node.array for node in topological([buffer.promise]) if isinstance(node, Read))


def _resized(buffer: Buffer, sizes: Mapping[Symbol, Index], *, promised: bool) -> Buffer:
    assert isinstance(buffer.layout, Strided), buffer.name
    strides = tuple(substitute(stride, sizes) for stride in buffer.layout.strides)
    shape = tuple(substitute(extent, sizes) for extent in buffer.shape)
    promise = substitute(buffer.promise, sizes) if promised else TRUE
    return evolve(buffer, shape=shape, layout=Strided(strides), promise=promise)


def _with_assumptions(kernel: Kernel, assumed: Mapping[Cond, Assume]) -> Kernel:
    """The kernel with all assumptions first, in an order in which a launcher can check them."""
    rest = (stmt for stmt in kernel.prologue if not isinstance(stmt, Assume) or stmt.cond not in assumed)
    return evolve(kernel, prologue=(*assumed.values(), *rest))
