"""Emit copies that all threads of an agent execute: vector loads and stores, and cp.async."""

from __future__ import annotations

from attrs import evolve

from argus.core.ir import Copy, View
from argus.emit.address import VectorAddress, vector_addresses
from argus.emit.copies import fill_word, vector_starts
from argus.emit.cuda.context import Context
from argus.emit.registers import vector_in_registers, vector_runs
from argus.emit.scope import Scope


def agent_scope(context: Context) -> Scope:
    """The scope with the agent's own thread index and size."""
    return evolve(context.scope, thread=context.thread, threads=context.threads)


def load_store_lines(copy: Copy, context: Context) -> list[str]:
    """One load or store per vector; a vector that a thread reads several times is loaded once.

    Raises ArgusError (E501) if registers do not form whole vectors.
    """
    loads = copy.target.buffer.space == "register"
    memory, registers = (copy.source, copy.target) if loads else (copy.target, copy.source)
    first = vector_starts(copy)
    declared, found = _vector_addresses(copy, memory, context, first)
    store = f"store_b{copy.atom.vector_bits}" if copy.combine is None else copy.atom.name
    bits, word = copy.atom.vector_bits, fill_word(copy.edge or 0.0, registers.buffer.dtype)
    body: list[str] = []
    loaded: dict[VectorAddress, str] = {}
    for run, place in zip(vector_runs(copy, registers, first), found, strict=True):
        there = _address(memory, place, context)
        vector = vector_in_registers(registers.buffer, run, context.scope, loads=loads)
        here = vector.pointer
        if loads and place in loaded:
            body += vector.around(f"load_b{bits}({here}, {loaded[place]});")
            continue
        if not vector.after:
            loaded[place] = here
        text = f"load_b{bits}({here}, {there});" if loads else f"{store}({there}, {here});"
        if place.inside and loads:
            text = f"if ({place.inside}) {text} else fill_b{bits}({here}, {word});"
        elif place.inside:
            text = f"if ({place.inside}) {text}"
        body += vector.around(text)
    return by_copying_threads(copy, context, [*declared, *body])


def cp_async_lines(copy: Copy, context: Context) -> list[str]:
    """cp.async from global to shared memory. Out of bounds it fills with zeros; other numbers are stored instead."""
    first = vector_starts(copy)
    size = copy.atom.vector_bits // 8
    from_lines, sources = _vector_addresses(copy, copy.source, context, first)
    to_lines, targets = _vector_addresses(copy, copy.target, context, first)
    body: list[str] = []
    for source, target in zip(sources, targets, strict=True):
        to = shared_address_text(copy.target, target, context)
        if copy.edge and source.inside:
            from_ = _address(copy.source, source, context)
            word = fill_word(copy.edge, copy.target.buffer.dtype)
            filled = f"fill_b{8 * size}(in_shared({to}), {word});"
            inner = f"if ({source.inside}) cp_async_{size}({to}, {from_}, {size}); else {filled}"
            body += [f"if ({target.inside}) {{", f"    {inner}", "}"] if target.inside else [inner]
            continue
        bytes_ = f"({source.inside}) ? {size} : 0" if source.inside else str(size)
        kept = f"if ({target.inside}) " if target.inside else ""
        body.append(f"{kept}cp_async_{size}({to}, {_address(copy.source, source, context)}, {bytes_});")
    return by_copying_threads(copy, context, [*from_lines, *to_lines, *body])


def by_copying_threads(copy: Copy, context: Context, lines: list[str]) -> list[str]:
    """Wrap statements in a block that only the copy's threads of the agent execute."""
    block = ["{", *(f"    {line}" for line in lines), "}"]
    if copy.by.threads.size() == context.threads:
        return block
    return [f"if ({context.names.symbols[context.thread]} < {copy.by.threads.size()})", *block]


def _vector_addresses(
    copy: Copy, view: View, context: Context, first: tuple[int, ...]
) -> tuple[list[str], list[VectorAddress]]:
    edge = copy.edge is not None
    return vector_addresses(view, copy.by, agent_scope(context), first, edge=edge, width="(long)")


def _address(view: View, place: VectorAddress, context: Context) -> str:
    """C pointer to a vector."""
    if view.buffer.space == "shared" and view.peer is not None:
        return f"in_shared_of({shared_address_text(view, place, context)}, {context.text(view.peer)})"
    if view.buffer.space == "shared":
        return f"in_shared({shared_address_text(view, place, context)})"
    return f"&{context.name_of(view.buffer)}[{place.offset}]"


def shared_address_text(view: View, place: VectorAddress, context: Context) -> str:
    """C text of a vector's shared-memory address."""
    size = view.buffer.dtype.bits // 8
    offset = place.offset if place.offset.isalnum() else f"({place.offset})"
    return f"{context.name_of(view.buffer)} + {offset if size == 1 else f'{size} * {offset}'}"
