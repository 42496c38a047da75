"""The text of `Mma`: products of a warpgroup by matrix descriptors, of a warp by registers; and their helpers."""

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
from argus.emit.cuda.context import Context, box_offset, linear
from argus.emit.cuda.plan import staged, substituted, swizzle_bytes
from argus.emit.faults import not_built
from argus.emit.hip.mma import affine
from argus.emit.loops import loops
from argus.emit.scope import held_by

_CHUNK = 16


def mma_lines(mma: Mma, context: Context) -> list[str]:
    """Raises ArgusError (E501) for a product that is not emitted."""
    if mma.atom.name.startswith("wgmma"):
        return _by_warpgroup(mma, context)
    if mma.atom.name.startswith("mma_m16n8k16"):
        return _by_warp(mma, context)
    raise not_built(f"the product `{mma.atom}`", mma.span)


def register_operands(mma: Mma) -> tuple[Buffer, ...]:
    """The registers that an asynchronous product uses late."""
    views = (mma.target, mma.a, mma.b) if mma.atom.completion.queue == "wgmma" else ()
    return tuple(view.buffer for view in views if view.buffer.space == "register")


# -- of a warpgroup ------------------------------------------------------------------------------------------


@frozen
class Matrix:
    """A matrix in shared memory as a descriptor names it.

    major: the index whose neighbours are neighbours. span: bytes of its rows, and of the swizzle; 16: none.
    address: C text of where it begins. step: 16-byte units from one instruction's k to the next. slab: bytes from one
    slab of rows of a span to the next, 0 where there is one.
    """

    major: Literal["k", "mn"]
    span: int
    address: str
    step: int
    slab: int

    @property
    def text(self) -> str:
        # Chunks without a swizzle are told the distance from slab to slab too, in the same bits.
        if self.major == "k" and not self.plain:
            return f"descriptor<{self.span}>({self.address})"
        beside = f", {self.slab}" if self.slab else ""
        return f"descriptor_mn<{self.span}{beside}>({self.address})"

    @property
    def plain(self) -> bool:
        """Whether it lies in slabs of chunks, which no swizzle permutes."""
        return self.span == _CHUNK and self.slab > 0

    def at(self, name: str) -> str:
        """C text of the descriptor for step kk."""
        if self.major == "mn" or not self.slab or self.plain:
            return f"{name} + {self.step} * kk"
        once = self.span // _CHUNK // self.step
        return f"{name} + {self.step} * (kk % {once}) + {self.slab // _CHUNK} * (kk / {once})"


def _by_warpgroup(mma: Mma, context: Context) -> list[str]:
    """One group of products, with the steps along k from the first to the last."""
    assert mma.atom.mnk is not None
    k = mma.atom.mnk[2]
    target, steps = held_by(mma.target, None, mma.span), mma.tiling.repeat[2]
    b = _matrix(mma, mma.b, k, context)
    a = None if mma.a.buffer.space == "register" else _matrix(mma, mma.a, k, context)
    keep = "1" if mma.init is FALSE else "0" if mma.init is TRUE else f"!({context.scope.text.cond(mma.init)})"
    left = a.at("a") if a is not None else _fragment(mma, context)
    call = f"{_name(mma)}({context.own(target)}, {left}, {b.at('b')}, keep || kk > 0);"
    # A in registers is held again by the wait: until then it is read.
    held = [f"hold({context.own(target)});"]
    body = [
        *([f"const u64 a = {a.text};"] if a is not None else []),
        f"const u64 b = {b.text};",
        f"const int keep = {keep};",
        *(f"hold({context.own(buffer)});" for buffer in register_operands(mma)),
        "wgmma_fence();",
        *loops([("kk", steps)], call),
        *([] if mma.grouped else ["wgmma_commit();"]),
        *held,
    ]
    return ["{", *(f"    {line}" for line in body), "}"]


def _fragment(mma: Mma, context: Context) -> str:
    """The registers of A for step kk."""
    buffer = held_by(mma.a, None, mma.span)
    first = affine(mma.tiling.a, (1, mma.tiling.repeat[2]), ("mm", "kk"), 1)
    if first is None:
        raise not_built("a matrix product whose fragments are not evenly spaced in registers", mma.span)
    return f"&{context.own(buffer)}[{first}]"


def _matrix(mma: Mma, view: View, k: int, context: Context) -> Matrix:
    """Raises ArgusError (E501) for a view that is no matrix of rows of one span, or of slabs of such."""
    layout, size = staged(view.buffer), view.buffer.dtype.bits // 8
    span = swizzle_bytes(layout.swizzle, size, mma.span) or _CHUNK
    width, columns = tile_columns(view.buffer), static(view.buffer.shape[-1])
    major, at = _placed(view, mma)
    if width is None or (width != columns and algebra.mod(at[-1], width) is not algebra.const(0)):
        raise not_built(f"a matrix of `{view.buffer.name}` that begins within a slab", mma.span)
    row, slab = width * size, static(view.buffer.shape[-2]) * span if width != columns else 0
    plain = span == _CHUNK and slab > 0
    if row != span or (major == "k" and span < k * size and not plain) or (major == "mn" and plain):
        raise not_built(f"an operand with rows of {row} bytes under a swizzle of {span}", mma.span)
    # Chunks of a row are counted from its start: the hardware permutes them as it reads.
    offset = box_offset(view.buffer, (*at[:-1], algebra.const(0)), mma.span)
    zeros = (algebra.const(0),) * (len(at) - 1)
    within = algebra.mul(linear(layout.layout, (*zeros, at[-1])), size)
    if algebra.mod(within, _CHUNK) is not algebra.const(0):
        raise not_built(f"a matrix of `{view.buffer.name}` that begins within a chunk of {_CHUNK} bytes", mma.span)
    step = (k * size // span * slab if plain else k * size if major == "k" else k * span) // _CHUNK
    return Matrix(major, span, context.beyond(view.buffer, algebra.add(offset, within)), step, slab)


def _placed(view: View, mma: Mma) -> tuple[Literal["k", "mn"], tuple[Index, ...]]:
    """Which index of a (rows, k) view runs along the buffer's last axis, and where in the buffer the view begins."""
    zero = substituted(view, (0, 0))
    steps = [
        [algebra.sub(there, here) for there, here in zip(substituted(view, at), zero, strict=True)]
        for at in ((1, 0), (0, 1))
    ]
    moved = [[step.value if isinstance(step, Const) else None for step in axis] for axis in steps]
    rest = [0] * (len(zero) - 2)
    if moved == [[*rest, 1, 0], [*rest, 0, 1]]:
        return "k", zero
    if moved == [[*rest, 0, 1], [*rest, 1, 0]]:
        return "mn", zero
    raise not_built(f"a matrix of `{view.buffer.name}` that is no box of neighbouring elements", mma.span)


def _major(mma: Mma, view: View) -> Literal["k", "mn", ""]:
    return "" if view.buffer.space == "register" else _placed(view, mma)[0]


def _name(mma: Mma) -> str:
    """The helper's: the instruction, and which operands are transposed."""
    turned = [role for role, view in (("a", mma.a), ("b", mma.b)) if _major(mma, view) == "mn"]
    return "_".join([mma.atom.name, *(f"{role}_mn" for role in turned)])


# -- of a warp -----------------------------------------------------------------------------------------------


def _by_warp(mma: Mma, context: Context) -> list[str]:
    """All executions of the instruction: every sum over k, then down the rows, then along the columns."""
    target, a, b = (held_by(view, None, mma.span) for view in (mma.target, mma.a, mma.b))
    rows, columns, depth = mma.tiling.repeat
    where = (
        affine(mma.tiling.c, (rows, columns), ("mm", "nn"), 1),
        affine(mma.tiling.a, (rows, depth), ("mm", "kk"), 1),
        affine(mma.tiling.b, (columns, depth), ("nn", "kk"), 1),
    )
    if None in where:
        raise not_built("a matrix product whose fragments are not evenly spaced in registers", mma.span)
    operands = [f"&{context.own(buffer)}[{first}]" for buffer, first in zip((target, a, b), where, strict=True)]
    call = f"{mma.atom.name}({', '.join(operands)});"
    counters = [("kk", depth), ("nn", columns), ("mm", rows)]
    return [*_cleared(mma, target, context), *loops(counters, call)]


def _cleared(mma: Mma, target: Buffer, context: Context) -> list[str]:
    if mma.init is FALSE:
        return []
    assert isinstance(target.layout, TV)
    clear = loops([("value", target.layout.values.size())], f"{context.own(target)}[value] = 0.0f;")
    if mma.init is TRUE:
        return clear
    return [f"if ({context.scope.text.cond(mma.init)}) {{", *(f"    {line}" for line in clear), "}"]


# -- helpers -------------------------------------------------------------------------------------------------


def helpers(kernel: Kernel) -> Iterator[str]:
    """The text of one function for each instruction that the kernel multiplies with."""
    made: dict[str, str] = {}
    for stmt in walk(kernel.body):
        if isinstance(stmt, Mma) and stmt.atom.name.startswith("wgmma"):
            made.setdefault(_name(stmt), _warpgroup_helper(stmt))
        elif isinstance(stmt, Mma):
            made.setdefault(stmt.atom.name, _warp_helper(stmt.atom))
    yield from (made[name] for name in sorted(made))


def _words(atom: Atom, role: str) -> int:
    """Registers of 32 bits that a thread holds of an operand."""
    operand = atom.operands[role]
    assert operand.tv is not None
    assert operand.dtype is not None
    return operand.tv.values.size() * operand.dtype.bits // 32


def _group(first: int, count: int) -> str:
    return f"{{{', '.join(f'%{place}' for place in range(first, first + count))}}}"


def _warpgroup_helper(mma: Mma) -> str:
    """One execution; `keep` 0 begins the sum anew."""
    atom, sums = mma.atom, _words(mma.atom, "c")
    in_registers = mma.a.buffer.space == "register"
    words = _words(atom, "a") if in_registers else 1
    turned = {f"{role}_transposed": int(_major(mma, v) == "mn") for role, v in (("a", mma.a), ("b", mma.b))}
    text = atom.spelling["sm_90a"].format(
        c=_group(0, sums),
        a=_group(sums, words) if in_registers else f"%{sums}",
        b=f"%{sums + words}",
        accumulate="p",
        **turned,
    )
    left = "const void* left" if in_registers else "u64 a"
    given = ", ".join(f'"r"(a[{place}])' for place in range(words)) if in_registers else '"l"(a)'
    outputs = ", ".join(f'"+f"(d[{place}])' for place in range(sums))
    opened = ["    const u32* a = (const u32*)left;"] if in_registers else []
    lines = [
        f"HELPER void {_name(mma)}(f32 (&d)[{sums}], {left}, u64 b, int keep) {{",
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
    """One execution: c += a b^T."""
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
