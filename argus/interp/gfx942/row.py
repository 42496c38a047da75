"""A row of the opcode table: how an instruction is encoded, the types of its operands, and what it computes.

A signature lists results, `=`, then sources, in the order of the assembler's operands. Tokens:

`u32`, `i32`, `f32`, `b32`, `u64`, ... an explicit operand of that type (`b`: only bits); a vector of 32-bit registers
beyond 64 bits is `b96`, `b128`, ..., `v4f32` and such;
`mask`: one bit for each lane, VCC in the short encodings and a pair of SGPRs in VOP3;
`scc`, `vcc`, `exec`, `m0`: registers that the encoding does not name;
`old`: the destination, which is read too, with the type of the first result;
`mix`: f16 or f32, as op_sel_hi says;
`k`: the 32-bit literal of `v_fmamk_f32` and `v_fmaak_f32`; `imm`: the 16-bit literal of SOPK, sign-extended.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal

import numpy.typing as npt
from attrs import frozen

Form = Literal[
    "SOP1", "SOP2", "SOPK", "SOPC", "SOPP", "SMEM", "VOP1", "VOP2", "VOPC", "VOP3", "VOP3P", "MAI", "DS", "FLAT",
    "GLOBAL", "SCRATCH", "MUBUF",
]  # fmt: skip
Array = npt.NDArray[Any]
Formula = (
    Callable[[], Any]
    | Callable[[Array], Any]
    | Callable[[Array, Array], Any]
    | Callable[[Array, Array, Array], Any]
    | Callable[[Array, Array, Array, Array], Any]
)
"""Of the sources, the result, or a tuple of results."""
IMPLICIT = frozenset({"scc", "vcc", "exec", "m0", "old", "imm"})
_WIDTH = re.compile(r"(?:v(\d+))?[a-z]+?(\d+)$")


@frozen
class Row:
    """One instruction. number: the opcode in its encoding. run: of an arithmetic instruction, a function of NumPy
    arrays that returns the results in the order of the signature; of another, what it does to a wave (see `act`).
    """

    name: str
    form: Form
    number: int
    results: tuple[str, ...]
    sources: tuple[str, ...]
    run: Callable[..., Any]
    arithmetic: bool = True

    @property
    def vector(self) -> bool:
        return self.form in {"VOP1", "VOP2", "VOPC", "VOP3", "VOP3P", "MAI"}


def row(name: str, form: Form, number: int, signature: str, run: Formula) -> Row:
    """An arithmetic instruction."""
    results, _, sources = signature.partition("=")
    return Row(name, form, number, tuple(results.split()), tuple(sources.split()), run)


def act(name: str, form: Form, number: int, signature: str, run: Callable[..., Any]) -> Row:
    """Another instruction: `run(step, instruction)` changes the wave, of which it may do anything."""
    results, _, sources = signature.partition("=")
    return Row(name, form, number, tuple(results.split()), tuple(sources.split()), run, arithmetic=False)


def dwords(label: str) -> int:
    """Registers that an operand of this type takes."""
    if label == "mask":
        return 2
    if label in {"k", "mix"}:
        return 1
    found = _WIDTH.match(label)
    assert found is not None, label
    count, bits = int(found.group(1) or 1), int(found.group(2))
    return max(1, count * bits // 32)
