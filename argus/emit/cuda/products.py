"""Emit `Mma` on sm_90a: wgmma with matrix descriptors, warp-level mma on registers, and their device functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from attrs import frozen

from argus.core import algebra
from argus.core.algebra import FALSE, TRUE
from argus.core.atom import Atom
from argus.core.index import Const, Index
from argus.core.ir import Buffer, Kernel, Mma, View, static, walk
from argus.core.layout import TV
from argus.core.memory.swizzle_tiles import tile_columns
from argus.emit.cuda.context import Context, box_offset, unswizzled_offset
from argus.emit.cuda.plan import coordinates_at, staged_layout, swizzle_bytes
from argus.emit.faults import not_built
from argus.emit.hip.mma import affine
from argus.emit.loops import unrolled_loops
from argus.emit.scope import whole_register_buffer

_CHUNK = 16


def mma_lines(mma: Mma, context: Context) -> list[str]:
    """Emit one MMA. Raises ArgusError (E501) for an instruction without an emitted form."""
    if mma.atom.name.startswith("wgmma"):
        return _wgmma_lines(mma, context)
    if mma.atom.name.startswith("mma_m16n8k16"):
        return _warp_mma_lines(mma, context)
    raise not_built(f"the product `{mma.atom}`", mma.span)


def register_operands(mma: Mma) -> tuple[Buffer, ...]:
    """The register operands that a wgmma uses asynchronously."""
    views = (mma.target, mma.a, mma.b) if mma.atom.completion.queue == "wgmma" else ()
    return tuple(view.buffer for view in views if view.buffer.space == "register")


# -- wgmma --------------------------------------------------------------------------------------------------


@frozen
class MatrixDescriptor:
    """A wgmma matrix descriptor of an operand in shared memory.

    major: the contiguous index. span: bytes of a row and of the swizzle; 16: no swizzle. address: C text of its start.
    step: descriptor units (16 bytes) between consecutive k-steps. tile_bytes: distance between swizzle tiles in bytes
    (a row is one span wide), 0 if there is only one.
    """

    major: Literal["k", "mn"]
    span: int
    address: str
    step: int
    tile_bytes: int

    @property
    def text(self) -> str:
        # Without a swizzle the leading-dimension field holds the distance between core matrices, as for MN-major.
        if self.major == "k" and not self.plain:
            return f"descriptor<{self.span}>({self.address})"
        stride = f", {self.tile_bytes}" if self.tile_bytes else ""
        return f"descriptor_mn<{self.span}{stride}>({self.address})"

    @property
    def plain(self) -> bool:
        """Whether the operand consists of unswizzled 16-byte chunks."""
        return self.span == _CHUNK and self.tile_bytes > 0

    def at(self, name: str) -> str:
        """C text of the descriptor of k-step kk."""
        if self.major == "mn" or not self.tile_bytes or self.plain:
            return f"{name} + {self.step} * kk"
        once = self.span // _CHUNK // self.step
        return f"{name} + {self.step} * (kk % {once}) + {self.tile_bytes // _CHUNK} * (kk / {once})"


def _wgmma_lines(mma: Mma, context: Context) -> list[str]:
    """One wgmma group: k-steps in ascending order."""
    assert mma.atom.mnk is not None
    k = mma.atom.mnk[2]
    target, steps = whole_register_buffer(mma.target, None, mma.span), mma.tiling.repeat[2]
    b = _matrix(mma, mma.b, k, context)
    a = None if mma.a.buffer.space == "register" else _matrix(mma, mma.a, k, context)
    keep = "1" if mma.init is FALSE else "0" if mma.init is TRUE else f"!({context.scope.text.cond(mma.init)})"
    left = a.at("a") if a is not None else _fragment(mma, context)
    call = f"{_helper_name(mma)}({context.name_of(target)}, {left}, {b.at('b')}, keep || kk > 0);"
    # A register operand A is pinned again at the wait, since the instruction reads it until then.
    pins = [f"hold({context.name_of(target)});"]
    body = [
        *([f"const u64 a = {a.text};"] if a is not None else []),
        f"const u64 b = {b.text};",
        f"const int keep = {keep};",
        *(f"hold({context.name_of(buffer)});" for buffer in register_operands(mma)),
        "wgmma_fence();",
        *unrolled_loops([("kk", steps)], call),
        *([] if mma.grouped else ["wgmma_commit();"]),
        *pins,
    ]
    return ["{", *(f"    {line}" for line in body), "}"]


def _fragment(mma: Mma, context: Context) -> str:
    """The registers of A at k-step kk."""
    buffer = whole_register_buffer(mma.a, None, mma.span)
    first = affine(mma.tiling.a, (1, mma.tiling.repeat[2]), ("mm", "kk"), 1)
    if first is None:
        raise not_built("a matrix product whose fragments are not evenly spaced in registers", mma.span)
    return f"&{context.name_of(buffer)}[{first}]"


def _matrix(mma: Mma, view: View, k: int, context: Context) -> MatrixDescriptor:
    """The descriptor of a view. Raises ArgusError (E501) unless the view consists of whole swizzle tiles."""
    layout, size = staged_layout(view.buffer), view.buffer.dtype.bits // 8
    span = swizzle_bytes(layout.swizzle, size, mma.span) or _CHUNK
    width, columns = tile_columns(view.buffer), static(view.buffer.shape[-1])
    major, at = _major_and_start(view, mma)
    if width is None or (width != columns and algebra.mod(at[-1], width) is not algebra.const(0)):
        raise not_built(f"a matrix of `{view.buffer.name}` that starts inside a swizzle tile", mma.span)
    row, tile_bytes = width * size, static(view.buffer.shape[-2]) * span if width != columns else 0
    plain = span == _CHUNK and tile_bytes > 0
    if row != span or (major == "k" and span < k * size and not plain) or (major == "mn" and plain):
        raise not_built(f"an operand with rows of {row} bytes under a swizzle of {span}", mma.span)
    # Start addresses are unswizzled: the hardware applies the swizzle to each address it reads.
    offset = box_offset(view.buffer, (*at[:-1], algebra.const(0)), mma.span)
    zeros = (algebra.const(0),) * (len(at) - 1)
    within = algebra.mul(unswizzled_offset(layout.layout, (*zeros, at[-1])), size)
    if algebra.mod(within, _CHUNK) is not algebra.const(0):
        raise not_built(f"a matrix of `{view.buffer.name}` that starts inside a chunk of {_CHUNK} bytes", mma.span)
    step = (k * size // span * tile_bytes if plain else k * size if major == "k" else k * span) // _CHUNK
    return MatrixDescriptor(major, span, context.address_at(view.buffer, algebra.add(offset, within)), step, tile_bytes)


def _major_and_start(view: View, mma: Mma) -> tuple[Literal["k", "mn"], tuple[Index, ...]]:
    """The major index of a (rows, k) view, the one along the buffer's last axis, and the view's first coordinates."""
    zero = coordinates_at(view, (0, 0))
    steps = [
        [algebra.sub(there, here) for there, here in zip(coordinates_at(view, at), zero, strict=True)]
        for at in ((1, 0), (0, 1))
    ]
    moved = [[step.value if isinstance(step, Const) else None for step in axis] for axis in steps]
    rest = [0] * (len(zero) - 2)
    if moved == [[*rest, 1, 0], [*rest, 0, 1]]:
        return "k", zero
    if moved == [[*rest, 0, 1], [*rest, 1, 0]]:
        return "mn", zero
    raise not_built(f"a matrix of `{view.buffer.name}` that is not a box of adjacent elements", mma.span)


def _major(mma: Mma, view: View) -> Literal["k", "mn", ""]:
    return "" if view.buffer.space == "register" else _major_and_start(view, mma)[0]


def _helper_name(mma: Mma) -> str:
    """Name of the device function: the instruction and which operands are MN-major."""
    transposed = [role for role, view in (("a", mma.a), ("b", mma.b)) if _major(mma, view) == "mn"]
    return "_".join([mma.atom.name, *(f"{role}_mn" for role in transposed)])


# -- warp-level mma ------------------------------------------------------------------------------------------


def _warp_mma_lines(mma: Mma, context: Context) -> list[str]:
    """All instructions of the tile: loops over k, n and m, with m innermost."""
    target, a, b = (whole_register_buffer(view, None, mma.span) for view in (mma.target, mma.a, mma.b))
    rows, columns, depth = mma.tiling.repeat
    where = (
        affine(mma.tiling.c, (rows, columns), ("mm", "nn"), 1),
        affine(mma.tiling.a, (rows, depth), ("mm", "kk"), 1),
        affine(mma.tiling.b, (columns, depth), ("nn", "kk"), 1),
    )
    if None in where:
        raise not_built("a matrix product whose fragments are not evenly spaced in registers", mma.span)
    operands = [f"&{context.name_of(buffer)}[{first}]" for buffer, first in zip((target, a, b), where, strict=True)]
    call = f"{mma.atom.name}({', '.join(operands)});"
    counters = [("kk", depth), ("nn", columns), ("mm", rows)]
    return [*_clear_lines(mma, target, context), *unrolled_loops(counters, call)]


def _clear_lines(mma: Mma, target: Buffer, context: Context) -> list[str]:
    if mma.init is FALSE:
        return []
    assert isinstance(target.layout, TV)
    clear = unrolled_loops([("value", target.layout.values.size())], f"{context.name_of(target)}[value] = 0.0f;")
    if mma.init is TRUE:
        return clear
    return [f"if ({context.scope.text.cond(mma.init)}) {{", *(f"    {line}" for line in clear), "}"]


# -- helpers -------------------------------------------------------------------------------------------------


def helpers(kernel: Kernel) -> Iterator[str]:
    """A device function for each MMA instruction that the kernel uses."""
    made: dict[str, str] = {}
    for stmt in walk(kernel.body):
        if isinstance(stmt, Mma) and stmt.atom.name.startswith("wgmma"):
            made.setdefault(_helper_name(stmt), _warpgroup_helper(stmt))
        elif isinstance(stmt, Mma):
            made.setdefault(stmt.atom.name, _warp_helper(stmt.atom))
    yield from (made[name] for name in sorted(made))


def _words(atom: Atom, role: str) -> int:
    """Number of 32-bit registers of an operand per thread."""
    operand = atom.operands[role]
    assert operand.tv is not None
    assert operand.dtype is not None
    return operand.tv.values.size() * operand.dtype.bits // 32


def _group(first: int, count: int) -> str:
    return f"{{{', '.join(f'%{place}' for place in range(first, first + count))}}}"


def _warpgroup_helper(mma: Mma) -> str:
    """One wgmma. `keep` 0 overwrites the accumulator (scale-d = 0)."""
    atom, sums = mma.atom, _words(mma.atom, "c")
    in_registers = mma.a.buffer.space == "register"
    words = _words(atom, "a") if in_registers else 1
    transposed = {f"{role}_transposed": int(_major(mma, v) == "mn") for role, v in (("a", mma.a), ("b", mma.b))}
    text = atom.spelling["sm_90a"].format(
        c=_group(0, sums),
        a=_group(sums, words) if in_registers else f"%{sums}",
        b=f"%{sums + words}",
        accumulate="p",
        **transposed,
    )
    left = "const void* left" if in_registers else "u64 a"
    given = ", ".join(f'"r"(a[{place}])' for place in range(words)) if in_registers else '"l"(a)'
    outputs = ", ".join(f'"+f"(d[{place}])' for place in range(sums))
    opened = ["    const u32* a = (const u32*)left;"] if in_registers else []
    lines = [
        f"HELPER void {_helper_name(mma)}(f32 (&d)[{sums}], {left}, u64 b, int keep) {{",
        *opened,
        "    asm volatile(",
        f'        "{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{sums + words + 1}, 0;\\n"',
        f'        "{text}\\n}}"',
        f"        : {outputs}",
        f'        : {given}, "l"(b), "r"(keep));',
        "}",
    ]
    return "\n".join([*lines, ""])


def _warp_helper(atom: Atom) -> str:
    """One instruction: c += a b^T."""
    sums, left, right = (_words(atom, role) for role in "cab")
    text = atom.spelling["sm_90a"].format(c=_group(0, sums), a=_group(sums, left), b=_group(sums + left, right))
    outputs = ", ".join(f'"+f"(d[{place}])' for place in range(sums))
    inputs = ", ".join(f'"r"({name}[{place}])' for name, count in (("a", left), ("b", right)) for place in range(count))
    lines = [
        f"HELPER void {atom.name}(f32* d, const void* left, const void* right) {{",
        "    const u32 *a = (const u32*)left, *b = (const u32*)right;",
        f'    asm volatile("{text}"',
        f"        : {outputs}",
        f"        : {inputs});",
        "}",
    ]
    return "\n".join([*lines, ""])
