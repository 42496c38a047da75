"""Hopper instructions of a warp: mma, ldmatrix and stmatrix, cp.async, ordinary loads and stores.

Coordinates of a stack of 8x8 matrices of 16-bit elements are (column, row of the stack). Sources: NVIDIA PTX
ISA, `mma.m16n8k16`, `ldmatrix`, `stmatrix`, `cp.async` (not bulk: the generic proxy), `ld`, `st`. Phases are those of
`argus.core.phases`.
"""

from __future__ import annotations

from argus.core.atom import Arithmetic, Atom, Completion, Operand, Space
from argus.core.dtype import DType, bf16, f16, f32
from argus.core.layout import TV, Layout
from argus.core.phases import PHASES

_SM_90A = frozenset({"sm_90a"})


def _mma(dtype: DType) -> Atom:
    a = TV(Layout((4, 8), (32, 1)), Layout((2, 2, 2), (16, 8, 128)), (16, 16))
    b = TV(Layout((4, 8), (16, 1)), Layout((2, 2), (8, 64)), (8, 16))
    c = TV(Layout((4, 8), (32, 1)), Layout((2, 2), (16, 8)), (16, 8))
    return Atom(
        name=f"mma_m16n8k16_{dtype}",
        targets=_SM_90A,
        unit=32,
        operands={
            "a": Operand("register", dtype, a.tile, a),
            "b": Operand("register", dtype, b.tile, b),
            "c": Operand("register", f32, c.tile, c),
        },
        mnk=(16, 8, 16),
        arithmetic=Arithmetic(f32, f32),
        completion=Completion(),
        issue_cycles=4.0,
        spelling={"sm_90a": f"mma.sync.aligned.m16n8k16.row.col.f32.{dtype}.{dtype}.f32 {{c}}, {{a}}, {{b}}, {{c}};"},
    )


mma_m16n8k16_bf16 = _mma(bf16)
mma_m16n8k16_f16 = _mma(f16)


def _rows(count: int) -> TV:
    """Lane 8 j + r addresses row r of matrix j, 16 bytes; lanes beyond the last row repeat earlier addresses."""
    return TV(Layout((8 * count, 4 // count), (8, 0)), Layout(8, 1), (8, 8 * count))


def _pairs(count: int) -> TV:
    """Of each matrix, lane l holds columns 2 (l % 4) + {0, 1} of row l // 4."""
    return TV(Layout(32, 2), Layout((2, count), (1, 64)), (8, 8 * count))


def _pairs_transposed(count: int) -> TV:
    """Of each matrix, lane l holds column l // 4 of rows 2 (l % 4) + {0, 1}."""
    return TV(Layout((4, 8), (16, 1)), Layout((2, count), (8, 64)), (8, 8 * count))


def _matrices(count: int, load: bool, transposed: bool) -> Atom:
    """One, two or four 8x8 matrices between shared memory and registers."""
    pairs, rows = _pairs_transposed(count) if transposed else _pairs(count), _rows(count)
    memory = Operand("shared", None, rows.tile, rows, 128, 16)
    fragment = Operand("register", None, pairs.tile, pairs)
    name = "ldmatrix" if load else "stmatrix"
    operands = {"source": memory, "target": fragment} if load else {"source": fragment, "target": memory}
    middle = ".trans" if transposed else ""
    places = "{target}, [{source}]" if load else "[{target}], {source}"
    return Atom(
        name=f"{name}_x{count}{'_trans' if transposed else ''}",
        targets=_SM_90A,
        unit=32,
        operands=operands,
        completion=Completion(),
        phases=tuple(PHASES["sm_90a", "ldmatrix" if load else "stmatrix", 128][:count]),
        issue_cycles=float(count),
        spelling={"sm_90a": f"{name}.sync.aligned.m8n8.x{count}{middle}.shared.b16 {places};"},
    )


ldmatrix_x4, ldmatrix_x4_trans = (_matrices(4, load=True, transposed=trans) for trans in (False, True))
stmatrix_x4, stmatrix_x4_trans = (_matrices(4, load=False, transposed=trans) for trans in (False, True))
ldmatrix_x2, ldmatrix_x2_trans = (_matrices(2, load=True, transposed=trans) for trans in (False, True))
stmatrix_x2, stmatrix_x2_trans = (_matrices(2, load=False, transposed=trans) for trans in (False, True))
ldmatrix_x1, ldmatrix_x1_trans = (_matrices(1, load=True, transposed=trans) for trans in (False, True))
stmatrix_x1, stmatrix_x1_trans = (_matrices(1, load=False, transposed=trans) for trans in (False, True))
LOADED = (ldmatrix_x4, ldmatrix_x4_trans, ldmatrix_x2, ldmatrix_x2_trans, ldmatrix_x1, ldmatrix_x1_trans)
STORED = (stmatrix_x4, stmatrix_x4_trans, stmatrix_x2, stmatrix_x2_trans, stmatrix_x1, stmatrix_x1_trans)
MATRICES = (*LOADED, *STORED)


def _cp_async(size: int) -> Atom:
    """Global to shared memory, `size` bytes per thread, in the issuing thread's groups; `cg` bypasses L1."""
    cached = "cg" if size == 16 else "ca"
    return Atom(
        name=f"cp_async_{size}",
        targets=_SM_90A,
        unit=32,
        operands={
            "source": Operand("global", vector_bits=8 * size, align=size),
            "target": Operand("shared", vector_bits=8 * size, align=size),
        },
        completion=Completion(queue="cp_async", group="commit", tracked=False),
        phases=PHASES["sm_90a", "write", 8 * size],
        issue_cycles=max(1.0, size / 4),
        spelling={"sm_90a": f"cp.async.{cached}.shared.global [{{target}}], [{{source}}], {size};"},
    )


cp_async = tuple(_cp_async(size) for size in (4, 8, 16))


def _move(name: str, source: Space, target: Space, bits: int) -> Atom:
    """`bits` contiguous bits per thread between registers and memory; using a load's result waits for it."""
    load = target == "register"
    memory = source if load else target
    fragment, place = Operand("register", vector_bits=bits), Operand(memory, vector_bits=bits, align=bits // 8)
    kind = ".v4.b32" if bits == 128 else ".v2.b32" if bits == 64 else f".b{bits}"
    places = "{target}, [{source}]" if load else "[{target}], {source}"
    return Atom(
        name=f"{name}_b{bits}",
        targets=_SM_90A,
        unit=32,
        operands={"source": place, "target": fragment} if load else {"source": fragment, "target": place},
        completion=Completion(),
        phases=PHASES["sm_90a", "read" if load else "write", bits] if memory == "shared" else (),
        issue_cycles=max(1.0, bits / 32),
        spelling={"sm_90a": f"{'ld' if load else 'st'}.{memory}{kind} {places};"},
    )


ld_global = tuple(_move("ld_global", "global", "register", bits) for bits in (16, 32, 64, 128))
st_global = tuple(_move("st_global", "register", "global", bits) for bits in (16, 32, 64, 128))
ld_shared = tuple(_move("ld_shared", "shared", "register", bits) for bits in (32, 64, 128))
st_shared = tuple(_move("st_shared", "register", "shared", bits) for bits in (32, 64, 128))

ld_global_b8, st_global_b8 = _move("ld_global", "global", "register", 8), _move("st_global", "register", "global", 8)
"""Single bytes, for rows of any alignment."""

ATOMS: tuple[Atom, ...] = (
    mma_m16n8k16_bf16,
    mma_m16n8k16_f16,
    *MATRICES,
    *cp_async,
    *ld_global,
    *st_global,
    ld_global_b8,
    st_global_b8,
    *ld_shared,
    *st_shared,
)
