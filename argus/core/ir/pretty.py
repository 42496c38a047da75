"""Prints a kernel as text, one statement a line, bodies indented. For reading and golden tests; never parsed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from argus.core.algebra import TRUE
from argus.core.index import Coord, Index
from argus.core.index_text import show
from argus.core.ir import (
    Advance,
    Alloc,
    Arrive,
    Assert,
    Assume,
    Atomic,
    Await,
    Both,
    Buffer,
    Cast,
    Claim,
    Commit,
    Compare,
    Copy,
    Covers,
    Distinct,
    Edit,
    Either,
    Elem,
    Equal,
    Equals,
    Fence,
    Fold,
    For,
    Get,
    Holds,
    If,
    Kernel,
    Launch,
    Let,
    Lit,
    Map,
    Mma,
    Neither,
    Num,
    One,
    Op,
    Order,
    Peek,
    Policy,
    Products,
    Program,
    Relation,
    Reset,
    Roles,
    Staged,
    Stmt,
    Strided,
    Sync,
    Tag,
    TagOf,
    Test,
    View,
    Wait,
    Where,
    WrittenOnce,
    bodies,
    program_claims,
)
from argus.core.layout import TV
from argus.core.values.formula_text import formula_text, restriction_text
from argus.core.values.rewriting import written_size

_LONGEST = 2_000
"""Characters of a claim that a message writes, and parts of its formula."""

Ordering = Arrive | Await | Sync | Commit | Wait | Fence | Edit | Advance | Policy


def pretty(kernel: Kernel, *, spans: bool = False) -> str:
    """The kernel's text, the same in every process. spans: append its source line to each statement."""
    cluster = "" if kernel.cluster == (1,) else f", clusters of {_tuple(kernel.cluster)}"
    resident = "" if kernel.resident == 1 else f", {kernel.resident} resident blocks"
    lines = [f"kernel {kernel.name} for {kernel.target}: {kernel.threads} threads{cluster}{resident}"]
    lines += [f"  tensor {_buffer(buffer)}" for buffer in kernel.parameters]
    lines += [
        f"  block {symbol.name} of {show(count)}" for symbol, count in zip(kernel.blocks, kernel.grid, strict=True)
    ]
    lines += _body(kernel.body, "  ", spans)
    return "\n".join(lines) + "\n"


def program_text(program: Program, *, spans: bool = False) -> str:
    """The program's text: tensors, workspaces and launches, then each kernel's own text."""
    lines = [f"program {program.name}"]
    lines += [f"  tensor {_buffer(buffer)}" for buffer in program.parameters]
    lines += [f"  workspace {_buffer(buffer)}" for buffer in program.workspaces]
    lines += [f"  {_launch(launch)}" for launch in program.launches]
    lines += [f"  {claim_text(claim)}" for _, claim in program_claims(program)]
    return "\n".join(lines) + "\n" + "".join(pretty(launch.kernel, spans=spans) for launch in program.launches)


def _launch(launch: Launch) -> str:
    tensors = ", ".join(f"{name}={buffer.name}" for name, buffer in launch.arguments.items())
    sizes = ", ".join(f"{symbol.name}={show(value)}" for symbol, value in launch.sizes)
    return f"launch {launch.kernel.name}({tensors})" + (f" with {sizes}" if sizes else "")


def _body(body: tuple[Stmt, ...], indent: str, spans: bool) -> Iterator[str]:
    for stmt in body:
        place = f"  # {_source_line(stmt)}" if spans else ""
        parts = bodies(stmt)
        if not parts:
            yield f"{indent}{_line(stmt)}{place}"
        for header, part in zip(_headers(stmt), parts, strict=True):
            if part or header != "else":
                yield f"{indent}{header}:{place}"
                yield from _body(part, indent + "  ", spans)


def _source_line(stmt: Stmt) -> str:
    frame = stmt.span.frame
    return "no source" if frame is None else f"{frame.file.replace(chr(92), '/').rpartition('/')[2]}:{frame.line}"


def _headers(stmt: Stmt) -> tuple[str, ...]:
    """The header line of each body of a statement."""
    match stmt:
        case For(symbol=symbol, start=start, stop=stop, step=step, unroll=unroll):
            by = "" if step == 1 else f" by {step}"
            repeated = "" if unroll is None else f" unroll {unroll}"
            return (f"for {symbol.name} from {show(start)} to {show(stop)}{by}{repeated}",)
        case If(cond=cond):
            return f"if {show(cond)}", "else"
        case Roles(roles=roles):
            return tuple(
                f"role {r.name} warps {r.first_warp} to {r.first_warp + r.warps - 1} agent {r.agent}"
                + ("" if r.registers is None else f" registers {r.registers}")
                + (f" as {r.number.name}" if r.agents > 1 else "")
                for r in roles
            )
        case One():
            return ("one thread",)
        case _:
            return ()


def _line(stmt: Stmt) -> str:
    """The line of a statement without its bodies."""
    match stmt:
        case Alloc(buffer=buffer, count=count):
            return f"alloc {_buffer(buffer)}" + ("" if count is None else f" count {count}")
        case Let(symbol=symbol, value=value):
            return f"let {symbol.name} = {_value(value)}"
        case Copy():
            return _copy(stmt)
        case Map(target=target, elem=elem):
            return f"{view_text(target)} = {elem_text(elem)}"
        case Fold(target=target, source=source, axis=axis, op=op, keep=keep, within=within):
            return f"{view_text(target)} = {keep} {op} of {view_text(source)} along {axis} within {within}"
        case Mma(atom=atom, tiling=tiling, target=target, a=a, b=b, init=init):
            product = f"{view_text(target)} += {view_text(a)} * {view_text(b)} init {show(init)}"
            grouped = " grouped" if stmt.grouped else ""
            return f"mma {atom} over waves {_tuple(tiling.waves)} {product}{grouped}"
        case Tag(view=view, names=names):
            return f"tag {view_text(view)} {_record(names)}"
        case Reset(buffer=buffer):
            return f"reset {buffer.name}"
        case Assume(cond=cond):
            return f"assume {show(cond)}"
        case Assert(claim=Equals() as claim):
            return claim_text(claim)
        case Assert(claim=claim):
            return f"assert {claim_text(claim)}"
        case For() | If() | Roles() | One():
            return " | ".join(_headers(stmt))
        case _:
            return _ordering_line(stmt)


def _ordering_line(stmt: Ordering) -> str:
    match stmt:
        case Arrive(event=event, count=count, bytes=size):
            return f"arrive {view_text(event)} count {count} bytes {show(size)}"
        case Await(event=event, phase=phase):
            return f"await {view_text(event)} phase {show(phase)}"
        case Sync(barrier=barrier, how=how, threads=threads):
            return f"sync {barrier} {how}" + ("" if threads is None else f" threads {threads}")
        case Commit(queue=queue):
            return f"commit {queue}"
        case Wait(queue=queue, pending=pending, of=of):
            return f"wait {queue} pending {pending}" + ("" if of == "all" else f" of {of}")
        case Fence(kind=kind, scope=scope):
            return f"fence {kind} {scope}"
        case Edit(map=buffer, step=step, tensor=tensor):
            return f"{step} {buffer.name}" + ("" if tensor is None else f" of {view_text(tensor)}")
        case Advance(counter=counter, by=by):
            return f"advance {counter.name} by {show(by)}"
        case Policy(name=name, args=args):
            return f"policy {name} {_tuple(args)}"
        case _:
            assert_never(stmt)


def _value(value: Peek | Atomic) -> str:
    match value:
        case Peek(view=view):
            return view_text(view)
        case Atomic(op=op, view=view, value=operand):
            return f"atomic {op} {view_text(view)}, {show(operand)}"
        case _:
            assert_never(value)


def _copy(stmt: Copy) -> str:
    rest = "" if stmt.edge is None else f" edge {stmt.edge:g}"
    rest += "" if stmt.signal is None else f" signal {view_text(stmt.signal)}"
    rest += "" if stmt.peers is None else f" peers {show(stmt.peers)}"
    rest += "" if stmt.combine is None else f" combine {stmt.combine}"
    rest += "" if stmt.through is None else f" through {stmt.through.name}"
    rest += f" cache {stmt.cache}" if stmt.cache else ""
    return f"copy {stmt.atom} {view_text(stmt.source)} -> {view_text(stmt.target)} by {stmt.by}{rest}"


def _tuple(numbers: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, numbers))})"


def _shape(shape: tuple[Index, ...]) -> str:
    return " x ".join(show(extent) for extent in shape)


def _record(names: tuple[tuple[str, Index], ...]) -> str:
    return f"({', '.join(f'{name}={show(value)}' for name, value in names)})"


def _buffer(buffer: Buffer) -> str:
    owner = f" of {buffer.owner}" if buffer.owner else ""
    banks = "" if buffer.banks is None else f" banks {buffer.banks}"
    promise = "" if buffer.promise is TRUE else f" promise {show(buffer.promise)}"
    shape = f" {_shape(buffer.shape)}" if buffer.shape else ""
    kind = f"{buffer.space} {buffer.dtype}{shape} at {_layout(buffer.layout)}"
    file = "" if buffer.file == "any" else f" in {buffer.file} registers"
    products = "" if buffer.products is None else f" products {buffer.products}"
    return f"{buffer.name}: {kind} align {buffer.align}{owner}{banks}{promise}{file}{products}"


def _layout(layout: Strided | Staged | TV) -> str:
    match layout:
        case Strided(strides=strides):
            return f"strides ({', '.join(show(stride) for stride in strides)})"
        case Staged(layout=inner, swizzle=swizzle):
            return str(inner) if swizzle is None else f"{swizzle} o {inner}"
        case TV():
            return str(layout)
        case _:
            assert_never(layout)


def _is_identity(at: tuple[Index, ...]) -> bool:
    return all(isinstance(index, Coord) and index.axis == axis for axis, index in enumerate(at))


def view_text(view: View) -> str:
    """The buffer's name for a view of all of it, else also the index of each axis and the view's shape."""
    where = "" if view.where is TRUE else f" where {show(view.where)}"
    peer = "" if view.peer is None else f" peer {show(view.peer)}"
    if _is_identity(view.at) and view.shape == view.buffer.shape:
        return f"{view.buffer.name}{where}{peer}"
    shape = f" : {_shape(view.shape)}" if view.shape else ""
    return f"{view.buffer.name}[{', '.join(show(index) for index in view.at)}{shape}]{where}{peer}"


def elem_text(elem: Elem) -> str:
    match elem:
        case Lit(value=value):
            return f"{value:g}"
        case Num(value=value):
            return f"num({show(value)})"
        case Get(view=view, at=at):
            return view_text(view) if _is_identity(at) else f"{view_text(view)}({', '.join(show(x) for x in at)})"
        case Op(name=name, args=args):
            return f"{name}({', '.join(elem_text(arg) for arg in args)})"
        case Cast(dtype=dtype, arg=arg):
            return f"{dtype}({elem_text(arg)})"
        case Where(test=test, then=then, other=other):
            return f"where({condition_text(test)}, {elem_text(then)}, {elem_text(other)})"
        case _:
            assert_never(elem)


def condition_text(test: Test) -> str:
    match test:
        case Holds(cond=cond):
            return show(cond)
        case Compare(op=op, left=left, right=right):
            return f"{elem_text(left)} {op} {elem_text(right)}"
        case Both(parts=parts):
            return f"all({', '.join(condition_text(part) for part in parts)})"
        case Either(parts=parts):
            return f"any({', '.join(condition_text(part) for part in parts)})"
        case Neither(part=part):
            return f"not({condition_text(part)})"
        case _:
            assert_never(test)


def _tag(tag: TagOf) -> str:
    before = f" {tag.back} before" if tag.back else ""
    return f"{view_text(tag.view)}.tag.{tag.name}{before}"


def claim_text(claim: Claim) -> str:
    match claim:
        case Equal(left=left, right=right):
            return f"equal {_tag(left)}, {_tag(right)}"
        case Distinct(components=components, over=over):
            across = f" over {', '.join(symbol.name for symbol in over)}" if over else ""
            return f"distinct {', '.join(map(_tag, components))}{across}"
        case Relation(names=names, cond=cond):
            return f"relation {show(cond)} with {', '.join(f'{symbol.name} = {_tag(tag)}' for symbol, tag in names)}"
        case Covers(of=of, low=low, high=high, where=where):
            within = "" if where is TRUE else f" where {show(where)}"
            return f"covers {_tag(of)} from {show(low)} to {show(high)}{within}"
        case Order(of=of):
            return f"order {_tag(of)}"
        case WrittenOnce(view=view, record=record, where=where):
            meant = "" if where is TRUE else f" where {show(where)}"
            return f"written once {view_text(view)} {_record(record)}{meant}"
        case Products(view=view, products=products, over=over):
            pairs = "; ".join(f"({', '.join(map(show, a))}) * ({', '.join(map(show, b))})" for a, b in products)
            every = ", ".join(f"{symbol.name} < {show(extent)}" for symbol, extent in over)
            return f"products {view_text(view)} {pairs}" + (f" for every {every}" if over else "")
        case Equals(view=view, formula=formula, where=where, before=before):
            rank = len(view.shape)
            meant = "" if where is TRUE else f", where={restriction_text(where, rank)}"
            return f"assert_equals({view_text(view)}, {formula_text(formula, rank, before)}{meant})"
        case _:
            assert_never(claim)


def claim_in_brief(claim: Claim) -> str:
    """The same for messages: a long formula is left out, whose text may grow as a power of what the user wrote."""
    text = "" if isinstance(claim, Equals) and written_size(claim.formula) > _LONGEST else claim_text(claim)
    if isinstance(claim, Equals) and not 0 < len(text) <= _LONGEST:
        return f"assert_equals({view_text(claim.view)}, ...)"
    return text
