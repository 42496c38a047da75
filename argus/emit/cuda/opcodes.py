"""Kinds of sm_90a instructions, by opcode [CUDA Binary Utilities 13, Hopper instruction set]."""

from __future__ import annotations

from argus.emit.cuda.sass import Instruction

SPILL_STORE, SPILL_LOAD = "STL", "LDL"
CALL = "CALL"
_BYTES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
_WORD_BYTES = 4
_ARITHMETIC = frozenset(
    {
        *("FADD", "FMUL", "FFMA", "FMNMX", "FSEL", "FSETP", "FCHK", "MUFU", "F2F", "F2FP", "F2I", "I2F"),
        *("HADD2", "HMUL2", "HFMA2", "HMNMX2", "HSET2", "HSETP2", "DADD", "DMUL", "DFMA"),
    }
)
_MEMORY = frozenset(
    {
        *("LD", "ST", "LDG", "STG", "LDS", "STS", "LDSM", "STSM", "LDL", "STL", "LDGSTS", "UTMALDG", "UTMASTG"),
        *("RED", "ATOM", "ATOMS", "ATOMG"),
    }
)
_MOVES = frozenset({"MOV", "UMOV", "R2UR", "PRMT", "SHFL", "IMAD.MOV", "IMAD.MOV.U32"})
_CONTROL = frozenset(
    {
        *("BRA", "BSSY", "BSYNC", "EXIT", "RET", "CALL", "NOP", "WARPSYNC"),
        *("BAR", "WARPGROUP", "SYNCS", "DEPBAR", "MEMBAR", "FENCE"),
    }
)


def is_product(each: Instruction) -> bool:
    """Whether it is a wgmma: HGMMA, QGMMA, IGMMA or BGMMA."""
    return each.name.endswith("GMMA")


def is_group(each: Instruction) -> bool:
    """Whether it begins a group of products. It has the products' line, which they themselves often lack."""
    return each.opcode == "WARPGROUP.ARRIVE"


def is_wait(each: Instruction) -> bool:
    """Whether it waits for wgmma groups."""
    return each.opcode.startswith("WARPGROUP.DEPBAR")


def is_exponential(each: Instruction) -> bool:
    return each.opcode.startswith("MUFU.EX2")


def is_arithmetic(each: Instruction) -> bool:
    """Whether it computes with floating-point numbers, or converts to or from them."""
    return each.name in _ARITHMETIC


def is_memory(each: Instruction) -> bool:
    return each.name in _MEMORY


def is_move(each: Instruction) -> bool:
    """Whether it moves a value between registers or lanes."""
    return each.name in _MOVES or each.opcode in _MOVES


def is_control(each: Instruction) -> bool:
    """Whether it jumps, calls, meets or waits."""
    return each.name in _CONTROL


def bytes_accessed(each: Instruction) -> int:
    """Bytes that a load or a store accesses for one thread."""
    return next((_BYTES[part] for part in each.opcode.split(".")[1:] if part in _BYTES), _WORD_BYTES)
