"""CDNA3 instructions (MI300X): MFMA, global and buffer copies, LDS reads and writes.

Sources: AMD Instinct MI300 ISA reference; AMD matrix instruction calculator (operand layouts). Phases are
those of `argus.core.phases`.
"""

from __future__ import annotations

from argus.core.atom import Arithmetic, Atom, Completion, Operand, Space
from argus.core.dtype import DType, bf16, e4m3fnuz, e5m2fnuz, f16, f32, i8, i32
from argus.core.layout import TV, Layout
from argus.core.phases import PHASES

_GFX942 = frozenset({"gfx942"})


def _mfma(
    name: str, dtype: DType, mnk: tuple[int, int, int], factor: TV, c: TV, cycles: float, builtin: str,
    other: DType | None = None,
) -> Atom:  # fmt: skip
    """A matrix product whose two factors have one layout, and one type unless B is of an `other`.

    Integers are summed in i32, and floats in f32.
    """
    sums = i32 if dtype.family == "int" else f32
    return Atom(
        name=name,
        targets=_GFX942,
        unit=64,
        operands={
            "a": Operand("register", dtype, factor.tile, factor),
            "b": Operand("register", other or dtype, factor.tile, factor),
            "c": Operand("register", sums, c.tile, c),
        },
        mnk=mnk,
        arithmetic=Arithmetic(sums, sums),
        completion=Completion(),
        issue_cycles=cycles,
        spelling={"gfx942": f"{builtin}({{a}}, {{b}}, {{c}}, 0, 0, 0)"},
    )


_FACTOR_32 = TV(Layout((32, 2), (1, 128)), Layout(4, 32), (32, 8))
_FACTOR_16 = TV(Layout((16, 4), (1, 64)), Layout(4, 16), (16, 16))
_SUMS_32 = TV(Layout((32, 2), (32, 4)), Layout((4, 4), (1, 8)), (32, 32))
_SUMS_16 = TV(Layout((16, 4), (16, 4)), Layout(4, 1), (16, 16))

mfma_f32_32x32x8_bf16 = _mfma(
    "mfma_f32_32x32x8_bf16", bf16, (32, 32, 8), _FACTOR_32, _SUMS_32, 32, "__builtin_amdgcn_mfma_f32_32x32x8bf16_1k"
)
mfma_f32_16x16x16_bf16 = _mfma(
    "mfma_f32_16x16x16_bf16", bf16, (16, 16, 16), _FACTOR_16, _SUMS_16, 16, "__builtin_amdgcn_mfma_f32_16x16x16bf16_1k"
)
mfma_f32_32x32x8_f16 = _mfma(
    "mfma_f32_32x32x8_f16", f16, (32, 32, 8), _FACTOR_32, _SUMS_32, 32, "__builtin_amdgcn_mfma_f32_32x32x8f16"
)
mfma_f32_16x16x16_f16 = _mfma(
    "mfma_f32_16x16x16_f16", f16, (16, 16, 16), _FACTOR_16, _SUMS_16, 16, "__builtin_amdgcn_mfma_f32_16x16x16f16"
)


def _of_bytes(a: DType, b: DType) -> tuple[Atom, Atom]:
    """Products of 8-bit floats of the FNUZ formats, by 32 rows and by 16: e4m3 is called fp8, e5m2 bf8."""
    forms = f"{_FORMATS[a.name]}_{_FORMATS[b.name]}"
    made = ((32, 16, _BYTES_32, _SUMS_32, 32), (16, 32, _BYTES_16, _SUMS_16, 16))
    wide, narrow = (
        _mfma(
            f"mfma_f32_{rows}x{rows}x{k}_{forms}", a, (rows, rows, k), factor, sums, cycles,
            f"__builtin_amdgcn_mfma_f32_{rows}x{rows}x{k}_{forms}", b,
        )
        for rows, k, factor, sums, cycles in made
    )  # fmt: skip
    return wide, narrow


_FORMATS = {"e4m3fnuz": "fp8", "e5m2fnuz": "bf8"}
_BYTES_32 = TV(Layout((32, 2), (1, 256)), Layout(8, 32), (32, 16))
_BYTES_16 = TV(Layout((16, 4), (1, 128)), Layout(8, 16), (16, 32))
mfma_f32_32x32x16_fp8_fp8, mfma_f32_16x16x32_fp8_fp8 = _of_bytes(e4m3fnuz, e4m3fnuz)
mfma_f32_32x32x16_fp8_bf8, mfma_f32_16x16x32_fp8_bf8 = _of_bytes(e4m3fnuz, e5m2fnuz)
mfma_f32_32x32x16_bf8_fp8, mfma_f32_16x16x32_bf8_fp8 = _of_bytes(e5m2fnuz, e4m3fnuz)
mfma_f32_32x32x16_bf8_bf8, mfma_f32_16x16x32_bf8_bf8 = _of_bytes(e5m2fnuz, e5m2fnuz)

mfma_i32_32x32x16_i8 = _mfma(
    "mfma_i32_32x32x16_i8", i8, (32, 32, 16), _BYTES_32, _SUMS_32, 32, "__builtin_amdgcn_mfma_i32_32x32x16_i8"
)
mfma_i32_16x16x32_i8 = _mfma(
    "mfma_i32_16x16x32_i8", i8, (16, 16, 32), _BYTES_16, _SUMS_16, 16, "__builtin_amdgcn_mfma_i32_16x16x32_i8"
)

buffer_load_lds = Atom(
    name="buffer_load_lds_b32",
    targets=_GFX942,
    unit=64,
    operands={
        "source": Operand("global", vector_bits=32, align=4),
        "target": Operand("shared", vector_bits=32, align=4),
    },
    completion=Completion(queue="vmem", tracked=False),
    edge="range_zero",
    phases=PHASES["gfx942", "write", 32],
    issue_cycles=4.0,
    spelling={"gfx942": "buffer_load_lds_b32({target}, {source})"},
    direct=True,
)
"""Global memory to LDS without registers, one dword per lane: lane l of a wave writes base + 4 l [MI300 ISA, buffer
loads to LDS]. A swizzle of shared memory is therefore applied to the global addresses that lanes read: the emitter
chooses which lane moves which dword among those that a wave writes at once.
"""


def _move(name: str, source: Space, target: Space, bits: int, spelling: str) -> Atom:
    """A copy of `bits` contiguous bits per thread between registers and memory, completed by a wait counter."""
    memory_align = bits // 8
    shared = "shared" in (source, target)
    return Atom(
        name=name,
        targets=_GFX942,
        unit=64,
        operands={
            "source": Operand(source, vector_bits=bits, align=1 if source == "register" else memory_align),
            "target": Operand(target, vector_bits=bits, align=1 if target == "register" else memory_align),
        },
        completion=Completion(queue="lds" if shared else "vmem", tracked=False),
        edge="range_zero" if name.startswith("buffer") else "none",
        phases=PHASES["gfx942", "read" if source == "shared" else "write", bits] if shared else (),
        issue_cycles=max(4.0, bits / 8),
        spelling={"gfx942": spelling},
    )


_WIDTHS = (16, 32, 64, 128)


def _family(name: str, source: Space, target: Space, spelling: str) -> tuple[Atom, ...]:
    return tuple(_move(f"{name}_b{bits}", source, target, bits, spelling.format(bits=bits)) for bits in _WIDTHS)


global_load = _family("global_load", "global", "register", "load_b{bits}({{target}}, {{source}})")
global_store = _family("global_store", "register", "global", "store_b{bits}({{target}}, {{source}})")
global_load_b8 = _move("global_load_b8", "global", "register", 8, "load_b8({target}, {source})")
global_store_b8 = _move("global_store_b8", "register", "global", 8, "store_b8({target}, {source})")
"""Single bytes, for rows of any alignment."""
buffer_load = _family("buffer_load", "global", "register", "buffer_load_b{bits}({{target}}, {{source}})")
buffer_store = _family("buffer_store", "register", "global", "buffer_store_b{bits}({{target}}, {{source}})")

ds_read_b32 = _move("ds_read_b32", "shared", "register", 32, "load_b32({target}, {source})")
ds_read_b64 = _move("ds_read_b64", "shared", "register", 64, "load_b64({target}, {source})")
ds_read_b128 = _move("ds_read_b128", "shared", "register", 128, "load_b128({target}, {source})")
ds_write_b32 = _move("ds_write_b32", "register", "shared", 32, "store_b32({target}, {source})")
ds_write_b64 = _move("ds_write_b64", "register", "shared", 64, "store_b64({target}, {source})")
ds_write_b128 = _move("ds_write_b128", "register", "shared", 128, "store_b128({target}, {source})")

ds_read = (ds_read_b32, ds_read_b64, ds_read_b128)
ds_write = (ds_write_b32, ds_write_b64, ds_write_b128)

ATOMS: tuple[Atom, ...] = (
    mfma_f32_32x32x8_bf16,
    mfma_f32_16x16x16_bf16,
    mfma_f32_32x32x8_f16,
    mfma_f32_16x16x16_f16,
    mfma_f32_32x32x16_fp8_fp8,
    mfma_f32_16x16x32_fp8_fp8,
    mfma_f32_32x32x16_fp8_bf8,
    mfma_f32_16x16x32_fp8_bf8,
    mfma_f32_32x32x16_bf8_fp8,
    mfma_f32_16x16x32_bf8_fp8,
    mfma_f32_32x32x16_bf8_bf8,
    mfma_f32_16x16x32_bf8_bf8,
    mfma_i32_32x32x16_i8,
    mfma_i32_16x16x32_i8,
    *global_load,
    *global_store,
    global_load_b8,
    global_store_b8,
    *buffer_load,
    *buffer_store,
    buffer_load_lds,
    *ds_read,
    *ds_write,
)
