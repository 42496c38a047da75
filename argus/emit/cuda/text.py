"""A kernel as one self-contained CUDA file for sm_90a.

Statements keep their order; each follows a comment with its place in the user's program. `Tag` and `Assert` leave no
trace. Shared tensors and barriers are addresses in one allocation, whose plan is `argus.emit.cuda.plan`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from attrs import evolve, frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.index import Const
from argus.core.ir import (
    Advance,
    Alloc,
    Arrive,
    Assert,
    Assume,
    Await,
    Buffer,
    Commit,
    Copy,
    Fence,
    Fold,
    For,
    If,
    Kernel,
    Let,
    Map,
    Mma,
    One,
    Peek,
    Policy,
    Reset,
    Role,
    Roles,
    Stmt,
    Sync,
    Tag,
    Wait,
    static,
    walk,
)
from argus.emit.c_expr import CText
from argus.emit.cuda.context import Context
from argus.emit.cuda.operations import copy_lines, mma_lines
from argus.emit.cuda.plan import Plan, plan_of, register_changes
from argus.emit.cuda.prelude import PRELUDE, matrix_helper
from argus.emit.elements import map_lines
from argus.emit.faults import not_built
from argus.emit.hip import place_of
from argus.emit.names import assign
from argus.emit.scope import Scope, c_type, layout_of

_AXES = "xyz"
_NO_UNIT = 1 << 30
"""No wave number is named in CUDA text."""


@frozen
class CudaText:
    """text: the file. symbol: the entry point. plan: what a launch must provide."""

    text: str
    symbol: str
    plan: Plan


def cuda_text(kernel: Kernel) -> CudaText:
    """The whole file. Raises ArgusError: E301 for another target, E501 for a construct that is not emitted yet."""
    if kernel.target.name != "sm_90a":
        message = f"no CUDA text for the target `{kernel.target}`: expected `sm_90a`"
        raise ArgusError(Diagnostic("E301", "error", message, kernel=kernel.name))
    if len(kernel.blocks) > len(_AXES) or kernel.cluster not in ((1,), (1, 1)):
        raise not_built("a grid of more than three axes, or a cluster", kernel.span, kernel.name)
    names = assign(kernel)
    scope = Scope(CText(names, kernel.thread, _NO_UNIT), kernel.thread, kernel.threads, {})
    plan = plan_of(kernel, names.buffers)
    context = Context(scope, plan, kernel.thread, kernel.threads)
    lines = [*_heading(kernel, context), *(f"    {line}" for line in _locals(kernel, context))]
    lines += [f"    {line}" for line in _Writer(context, kernel).body(kernel.body)]
    head = f"// {kernel.name} for {kernel.target}, emitted by Argus.\n{PRELUDE}{''.join(_helpers(kernel))}"
    return CudaText("\n".join([head, *lines, "}", ""]), names.kernel, plan)


def _helpers(kernel: Kernel) -> Iterator[str]:
    shapes = {(stmt.atom.mnk, stmt.a.buffer.dtype.name) for stmt in walk(kernel.body) if isinstance(stmt, Mma)}
    for mnk, dtype in sorted(shapes, key=str):
        assert mnk is not None
        yield matrix_helper(mnk[1], mnk[2], f"f32.{dtype}.{dtype}")


def _heading(kernel: Kernel, context: Context) -> Iterator[str]:
    """The signature: tensor maps, then sizes."""
    maps = [f"const __grid_constant__ TensorMap {each.name}" for each in context.plan.maps.values()]
    sizes = [f"int {context.names.symbols[size]}" for size in kernel.sizes]
    yield f'extern "C" __global__ void __launch_bounds__({kernel.threads}, 1)'
    yield f"{context.names.kernel}({', '.join([*maps, *sizes])}) {{"


def _locals(kernel: Kernel, context: Context) -> Iterator[str]:
    yield f"const int {context.names.symbols[kernel.thread]} = threadIdx.x;"
    for axis, block in zip(_AXES, kernel.blocks, strict=False):
        yield f"const int {context.names.symbols[block]} = blockIdx.{axis};"
    yield "extern __shared__ __align__(1024) unsigned char memory[];"
    yield "const u32 base = shared_address(memory) + 1023 & ~1023u;"
    for buffer, offset in context.plan.offsets.items():
        yield f"const u32 {context.own(buffer)} = base + {offset};"


@frozen
class _Writer:
    context: Context
    kernel: Kernel

    def body(self, body: tuple[Stmt, ...]) -> Iterator[str]:
        for stmt in body:
            lines = self._stmt(stmt)
            if lines:
                yield f"// {place_of(stmt)}"
                yield from lines

    def _stmt(self, stmt: Stmt) -> list[str]:
        context = self.context
        match stmt:
            case Tag() | Assert() | Assume() | Reset() | Policy():
                return []
            case Alloc(buffer=buffer, count=count):
                return self._declared(buffer, count, stmt)
            case Copy():
                return copy_lines(stmt, context)
            case Map():
                return map_lines(stmt, evolve(context.scope, thread=context.thread, threads=context.threads))
            case Mma():
                return mma_lines(stmt, context)
            case Wait():
                return self._wait(stmt)
            case Commit(queue=queue):
                return ["bulk_commit();"] if queue == "bulk" else []
            case Fence(kind=kind):
                return _fence(kind, stmt)
            case Arrive():
                return [self._arrive(stmt)]
            case Await(event=event, phase=phase):
                return [f"await_parity({context.event(event, stmt.span)}, ({context.text(phase)}) & 1);"]
            case Sync():
                return [self._sync(stmt)]
            case Let(symbol=symbol, value=Peek(view=view)) if view.buffer.space == "counter":
                return [f"const int {context.names.symbols[symbol]} = {context.own(view.buffer)};"]
            case Advance(counter=counter, by=by):
                return [f"{context.own(counter)} += {context.text(by)};"]
            case For():
                return self._for(stmt)
            case If():
                return self._if(stmt)
            case One(body=body):
                return [f"if ({context.names.symbols[context.thread]} == 0) {{", *self._inner(body), "}"]
            case Roles():
                return list(self._roles())
            case Let() | Fold():
                raise not_built(f"the statement `{type(stmt).__name__}`", stmt.span)
            case _:
                assert_never(stmt)

    def _declared(self, buffer: Buffer, count: int | None, stmt: Alloc) -> list[str]:
        name = self.context.own(buffer)
        match buffer.space:
            case "shared":
                return []
            case "barrier":
                init = f"barrier_init({name} + 8 * i, {count});"
                thread = self.context.names.symbols[self.context.thread]
                return [f"if ({thread} == 0)", f"    for (int i = 0; i < {static(buffer.shape[0])}; ++i) {init}"]
            case "counter":
                return [f"int {name} = 0;"]
            case "register":
                return [f"{c_type(buffer.dtype)} {name}[{layout_of(buffer).values.size()}];"]
            case _:
                raise not_built(f"storage in `{buffer.space}`", stmt.span)

    def _wait(self, stmt: Wait) -> list[str]:
        if stmt.queue == "bulk":
            return [f"bulk_wait{'_reads' if stmt.of == 'reads' else ''}<{stmt.pending}>();"]
        if stmt.queue != "wgmma":
            raise not_built(f"a wait on the queue `{stmt.queue}`", stmt.span)
        held = [] if stmt.pending else [f"hold({self.context.own(buffer)});" for buffer in self._accumulators()]
        return [f"wgmma_wait<{stmt.pending}>();", *held]

    def _accumulators(self) -> list[Buffer]:
        body = self.kernel.body if self.context.role is None else self.context.role.body
        return list(dict.fromkeys(stmt.target.buffer for stmt in walk(body) if isinstance(stmt, Mma)))

    def _arrive(self, stmt: Arrive) -> str:
        event = self.context.event(stmt.event, stmt.span)
        if stmt.count != 1:
            raise not_built(f"{stmt.count} arrivals at once", stmt.span)
        if isinstance(stmt.bytes, Const) and stmt.bytes.value == 0:
            return f"arrive({event});"
        return f"arrive_expect({event}, {self.context.text(stmt.bytes)});"

    def _sync(self, stmt: Sync) -> str:
        role = self.context.role
        if stmt.barrier == "cta":
            return "__syncthreads();"
        threads = stmt.threads or self.context.threads
        number = str(self.context.plan.ids[stmt.barrier])
        if role is not None and role.name == stmt.barrier and role.agents > 1:
            number = f"{number} + {self.context.names.symbols[role.number]}"
        return f"meet{'_arrive' if stmt.how == 'arrive' else ''}({number}, {threads});"

    def _for(self, stmt: For) -> list[str]:
        name = self.context.names.symbols[stmt.symbol]
        start, stop = self.context.text(stmt.start), self.context.text(stmt.stop)
        step = f"++{name}" if stmt.step == 1 else f"{name} += {stmt.step}"
        head = f"for (int {name} = {start}; {name} {'<' if stmt.step > 0 else '>'} {stop}; {step}) {{"
        return [head, *self._inner(stmt.body), "}"]

    def _if(self, stmt: If) -> list[str]:
        lines = [f"if ({self.context.scope.text.cond(stmt.cond)}) {{", *self._inner(stmt.then)]
        if stmt.otherwise:
            lines += ["} else {", *self._inner(stmt.otherwise)]
        return [*lines, "}"]

    def _inner(self, body: tuple[Stmt, ...]) -> list[str]:
        return [f"    {line}" for line in self.body(body)]

    def _roles(self) -> Iterator[str]:
        """One branch a role: all its warps set their registers, its agents run the body."""
        block = self.context.names.symbols[self.kernel.thread]
        for place, (role, change) in enumerate(register_changes(self.kernel, self.context.plan)):
            first, last = role.first_warp * role.unit, (role.first_warp + role.warps) * role.unit
            own = evolve(self, context=evolve(self.context, role=role, thread=role.thread, threads=role.agent))
            yield f"{'} else ' if place else ''}if ({block} >= {first} && {block} < {last}) {{  // {role.name}"
            if change:
                yield f"    {change}"
            yield from (f"    {line}" for line in own.agents(role, block, first))
        yield "}"

    def agents(self, role: Role, block: str, first: int) -> Iterator[str]:
        """The body of a role under the numbers of its agents."""
        number, thread = (self.context.names.symbols[symbol] for symbol in (role.number, role.thread))
        if role.agent == 1:
            yield f"if ({block} == {first}) {{"
            yield f"    [[maybe_unused]] const int {number} = 0, {thread} = 0;"
            yield from self._inner(role.body)
            yield "}"
            return
        yield f"[[maybe_unused]] const int {number} = ({block} - {first}) / {role.agent};"
        yield f"[[maybe_unused]] const int {thread} = ({block} - {first}) % {role.agent};"
        yield from self.body(role.body)


def _fence(kind: str, stmt: Fence) -> list[str]:
    match kind:
        case "async_proxy":
            return ["fence_async_proxy();"]
        case "barrier_init":
            return ["fence_barrier_init();"]
        case "wgmma":
            return []  # every product begins with one
        case _:
            raise not_built(f"the fence `{kind}`", stmt.span)
