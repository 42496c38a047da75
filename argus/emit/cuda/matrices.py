"""Emit ldmatrix and stmatrix: 8 x 8 matrices of 16-bit elements between shared memory and a warp's registers.

Lane 8 j + i supplies the address of row i of matrix j. Lane l holds one pair of each matrix: elements 2 (l % 4) and
2 (l % 4) + 1 of row l / 4, or of column l / 4 if transposed [NVIDIA PTX ISA, ldmatrix and stmatrix].
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from attrs import frozen

from argus.core import algebra
from argus.core.atom import Atom
from argus.core.index import Const, Index, Symbol
from argus.core.ir import Copy, Kernel, View, walk
from argus.core.layout import IntArray, Swizzle
from argus.core.walk import substitute
from argus.emit.bits import linear_in_bits
from argus.emit.cuda.context import Context, unswizzled_offset
from argus.emit.cuda.moves import by_copying_threads
from argus.emit.cuda.plan import coordinates_at, staged_layout
from argus.emit.faults import not_built
from argus.emit.registers import register_values

_LANES = np.arange(32)
_ROWS = np.arange(8)


@frozen
class _MatrixRows:
    """Tile coordinates of the first element of each matrix row, indexed (axis, warp, group, matrix, row)."""

    at: IntArray

    @property
    def groups(self) -> int:
        return self.at.shape[2]

    def addressed_rows(self) -> IntArray:
        """The row whose address each thread supplies, (axis, thread, group). Unused lanes repeat the rows of others."""
        axes, warps, groups, matrices, rows = self.at.shape
        addressed = self.at.transpose(0, 1, 3, 4, 2).reshape(axes, warps, matrices * rows, groups)
        return np.tile(addressed, (1, 1, 32 // (matrices * rows), 1)).reshape(axes, warps * 32, groups)


def matrix_lines(copy: Copy, context: Context) -> list[str]:
    """One instruction for each group of registers. Raises ArgusError (E501) if they do not form 8 x 8 matrices."""
    loads = copy.target.buffer.space == "register"
    memory, fragment = (copy.source, copy.target) if loads else (copy.target, copy.source)
    rows = _rows(copy, memory)
    registers = register_values(fragment, copy.by, copy.span)
    lines, addresses = _addresses(memory, rows, context)
    count = len(registers) // rows.groups
    name = context.name_of(fragment.buffer)
    for group, address in enumerate(addresses):
        own = registers[group * count : (group + 1) * count]
        if any(first % 2 or second != first + 1 for first, second in zip(own[::2], own[1::2], strict=True)):
            raise not_built(f"`{copy.atom}` of registers that are not adjacent pairs", copy.span)
        pairs = ", ".join(f"&{name}[{first}]" for first in own[::2])
        operands = f"{pairs}, {address}" if loads else f"{address}, {pairs}"
        lines.append(f"{copy.atom.name}({operands});")
    return by_copying_threads(copy, context, lines)


def _rows(copy: Copy, memory: View) -> _MatrixRows:
    """The rows of all matrices, checked against the copy's TV layout."""
    operand = next(each for each in copy.atom.operands.values() if each.space == "register")
    assert operand.tv is not None
    count, transposed = operand.tv.values.size(), copy.atom.name.endswith("_trans")
    threads, values = copy.by.threads.size(), copy.by.values.size()
    size, swizzle = memory.buffer.dtype.bits, staged_layout(memory.buffer).swizzle
    if threads % 32 or values % count or size != 16 or not _whole_chunks(swizzle):
        raise not_built(f"`{copy.atom}` of {values} elements of {size} bits in {threads} threads", copy.span)
    shape = (threads // 32, 32, values // count, count // 2, 2)
    elements = np.stack([axis.reshape(shape) for axis in copy.by.coordinates()])
    inner = _inner_axis(memory, copy)
    if transposed:
        at = np.stack([elements[:, :, row // 2, :, :, row % 2] for row in range(8)], axis=-1)
        row, column = 2 * (_LANES[:, None] % 4) + np.arange(2), _LANES[:, None] // 4 + np.zeros(2, np.int64)
    else:
        at = np.stack([elements[:, :, 4 * row, :, :, 0] for row in range(8)], axis=-1)
        row, column = _LANES[:, None] // 4 + np.zeros(2, np.int64), 2 * (_LANES[:, None] % 4) + np.arange(2)
    wanted = at[..., row].copy()
    wanted[inner] += column
    if not np.array_equal(wanted, elements.transpose(0, 1, 3, 4, 2, 5)):
        raise not_built(f"`{copy.atom}` of registers that do not form 8 x 8 matrices", copy.span)
    return _MatrixRows(at)


def _whole_chunks(swizzle: Swizzle | None) -> bool:
    """Whether the swizzle keeps rows of 8 elements contiguous."""
    return swizzle is None or (swizzle.base >= 3 and swizzle.shift > 0)


def _inner_axis(view: View, copy: Copy) -> int:
    """The axis along which the view is contiguous."""
    rank = len(view.shape)
    zero = coordinates_at(view, (0,) * rank)
    for axis in range(rank):
        one = coordinates_at(view, tuple(int(axis == other) for other in range(rank)))
        steps = [algebra.sub(a, b) for a, b in zip(one, zero, strict=True)]
        if [step.value if isinstance(step, Const) else None for step in steps] == [0] * (len(steps) - 1) + [1]:
            return axis
    raise not_built(f"`{copy.atom}` of a view of `{view.buffer.name}` without a contiguous axis", copy.span)


def _addresses(memory: View, rows: _MatrixRows, context: Context) -> tuple[list[str], list[str]]:
    """Declarations of locals, and the shared-memory address that a thread supplies for each group."""
    layout = staged_layout(memory.buffer)
    known: list[tuple[Index, str]] = []
    lines: list[str] = []
    found: list[str] = []
    for coordinates in rows.addressed_rows().transpose(2, 0, 1):
        tile = tuple(_row_addresses(axis, context.thread, memory) for axis in coordinates)
        place = tuple(substitute(expression, {}, tile) for expression in memory.at)
        wanted = unswizzled_offset(layout.layout, place)
        text = next((plus for first, name in known if (plus := _plus_constant(wanted, first, name))), "")
        if not text:
            text = f"at{len(known)}"
            known.append((wanted, text))
            lines.append(f"const int {text} = {context.text(wanted)};")
        if layout.swizzle is not None and layout.swizzle.bits:
            swizzle = layout.swizzle
            text = f"swizzled<{swizzle.bits}, {swizzle.base}, {swizzle.shift}>({text})"
        found.append(f"{context.name_of(memory.buffer)} + 2 * {text if text.endswith(')') else f'({text})'}")
    return lines, found


def _row_addresses(values: IntArray, thread: Symbol, memory: View) -> Index:
    found = linear_in_bits(values, thread)
    if found is None:
        raise not_built(f"matrices of `{memory.buffer.name}` whose rows are not linear in the bits of the thread index")
    return found


def _plus_constant(wanted: Index, first: Index, name: str) -> str:
    """C text of `name` plus a constant if the two expressions differ by one, else empty."""
    distance = algebra.sub(wanted, first)
    if not isinstance(distance, Const):
        return ""
    return name if distance.value == 0 else f"{name} {'-' if distance.value < 0 else '+'} {abs(distance.value)}"


def helpers(kernel: Kernel) -> Iterator[str]:
    """A device function for each ldmatrix or stmatrix variant that the kernel uses."""
    used = {stmt.atom.name: stmt.atom for stmt in walk(kernel.body) if isinstance(stmt, Copy)}
    for name in sorted(used):
        if name.startswith(("ldmatrix", "stmatrix")):
            yield _helper(used[name], name.startswith("ld"))


def _helper(atom: Atom, loads: bool) -> str:
    tv = next(each.tv for each in atom.operands.values() if each.space == "register")
    assert tv is not None
    names = [f"r{place}" for place in range(tv.values.size() // 2)]
    kind = "void*" if loads else "const void*"
    given = [f"{kind} {name}" for name in names]
    words = [f"*({'u32*' if loads else 'const u32*'}){name}" for name in names]
    if loads:
        group, memory = _group(0, len(names)), f"%{len(names)}"
        signature, text = [*given, "u32 at"], atom.spelling["sm_90a"].format(target=group, source=memory)
        outputs = ", ".join(f'"=r"({word})' for word in words)
        operands = f'{outputs} : "r"(at)'
    else:
        group, memory = _group(1, len(names)), "%0"
        signature, text = ["u32 at", *given], atom.spelling["sm_90a"].format(target=memory, source=group)
        inputs = ", ".join(f'"r"({word})' for word in words)
        operands = f': "r"(at), {inputs}'
    head = f"HELPER void {atom.name}({', '.join(signature)}) {{"
    return "\n".join([head, f'    asm volatile("{text}"', f'        : {operands} : "memory");', "}", ""])


def _group(first: int, count: int) -> str:
    return f"{{{', '.join(f'%{place}' for place in range(first, first + count))}}}"
