"""Emit `Copy` on gfx942: one vector load or store per line."""

from __future__ import annotations

import numpy as np

from argus.core.dtype import DType
from argus.core.ir import Copy, View
from argus.emit.address import VectorAddress, vector_addresses
from argus.emit.faults import not_built
from argus.emit.registers import vector_in_registers, vector_runs
from argus.emit.scope import Scope


def vector_starts(copy: Copy) -> tuple[int, ...]:
    """Index of each vector's first value in one thread. Raises ArgusError (E501) unless vectors divide its values."""
    size = copy.atom.vector_bits // copy.source.buffer.dtype.bits
    values = copy.by.values.size()
    if size == 0 or values % size:
        raise not_built(f"{copy.atom} where a thread holds {values} elements of {copy.source.buffer.dtype}", copy.span)
    return tuple(range(0, values, size))


def is_predicated(copy: Copy, scope: Scope) -> bool:
    """Whether some thread may skip an instruction of the copy."""
    return copy.by.threads.size() < scope.threads or (copy.edge is not None and not _predicate_in_offset(copy))


def _predicate_in_offset(copy: Copy) -> bool:
    """Whether an out-of-range buffer offset replaces the predicate: the hardware loads 0 and drops the store."""
    return copy.atom.edge == "range_zero" and (copy.edge == 0 or copy.source.buffer.space == "register")


def copy_lines(copy: Copy, scope: Scope) -> list[str]:
    """A block of C statements. Raises ArgusError (E501) for a copy without a gfx942 instruction."""
    _check_supported(copy)
    memory = copy.source if copy.target.buffer.space == "register" else copy.target
    first = vector_starts(copy)
    ranged = copy.atom.edge == "range_zero"
    width = "(unsigned)" if ranged else "(long)"
    edge = copy.edge is not None
    declared, found = vector_addresses(memory, copy.by, scope, first, edge=edge, width=width)
    loads = memory is copy.source
    registers = copy.target if loads else copy.source
    body: list[str] = []
    for run, place in zip(vector_runs(copy, registers, first), found, strict=True):
        vector = vector_in_registers(registers.buffer, run, scope, loads=loads)
        body += vector.around(_vector_statement(copy, scope, vector.pointer, place, memory))
    lines = ["{", *(f"    {line}" for line in (*declared, *body)), "}"]
    if copy.by.threads.size() == scope.threads:
        return lines
    return [f"if ({scope.names.symbols[scope.thread]} < {copy.by.threads.size()})", *lines]


def _check_supported(copy: Copy) -> None:
    for unsupported, what in (
        (copy.signal, "a copy that signals a barrier"),
        (copy.peers, "a copy to several blocks"),
        (copy.cache, f"the cache policy `{copy.cache}`"),
        (copy.source.peer or copy.target.peer, "a copy between blocks"),
    ):
        if unsupported:
            raise not_built(what, copy.span)
    spaces = (copy.source.buffer.space, copy.target.buffer.space)
    declared = (copy.atom.operands["source"].space, copy.atom.operands["target"].space)
    if spaces != declared or "register" not in spaces:
        raise not_built(f"{copy.atom} from {spaces[0]} to {spaces[1]} memory", copy.span)


def _vector_statement(copy: Copy, scope: Scope, register: str, place: VectorAddress, memory: View) -> str:
    """C text of one vector load or store, with its predicate. register: C pointer to the registers."""
    name = scope.names.buffers[memory.buffer]
    if copy.atom.edge == "range_zero":
        offset = f"{memory.buffer.dtype.bits // 8}u * ({place.offset})"
        folded = place.inside and _predicate_in_offset(copy)
        place_text = f"{name}_buffer, {f'guard({place.inside}, {offset})' if folded else offset}"
    else:
        place_text = f"&{name}[{place.offset}]"
    loads = memory is copy.source
    operands = {"source": place_text, "target": register} if loads else {"source": register, "target": place_text}
    text = f"{copy.atom.spelling['gfx942'].format(**operands)};"
    if not place.inside or _predicate_in_offset(copy):
        return text
    if not loads:
        return f"if ({place.inside}) {text}"
    word = fill_word(copy.edge or 0.0, copy.target.buffer.dtype)
    return f"if ({place.inside}) {text} else fill_b{copy.atom.vector_bits}({register}, {word});"


_WORD_BITS = 32


def fill_word(value: float, dtype: DType) -> str:
    """C text of a 32-bit word filled with copies of a value."""
    if dtype.bits > _WORD_BITS and value:
        raise not_built(f"padding of {value:g} among elements of {dtype}")
    element = np.array([value]).astype(dtype.numpy).tobytes()
    word = int.from_bytes(element * (4 // len(element)), "little")
    return f"0x{word:08X}u" if word else "0u"
