"""Products of the FNUZ formats of gfx942: proved, executed as text and machine code, and refuted with wrong lanes."""

from __future__ import annotations

import numpy as np
import pytest

from argus.core.atom import Atom
from argus.core.atoms import gfx942 as isa
from argus.core.diagnostic import ArgusError
from argus.core.dtype import DType, e4m3fnuz, e5m2fnuz
from argus.core.ir import Kernel
from argus.core.verdict import Proved, Refuted
from argus.emit.hip.text import hip_text
from argus.interp.interpret import interpret
from argus.language import (
    Tensor,
    assert_covers,
    assert_written_once,
    block_id,
    ceil_div,
    copy,
    f32,
    gfx942,
    kernel,
    mfma,
    mma,
    registers,
    tag,
    vmem,
)
from argus.runtime.cpu.validate import validate
from argus.runtime.machine.validate import validate_code
from argus.verifier.kernel import verify

FNUZ = (e4m3fnuz, e5m2fnuz)
MATRIX = tuple(atom for atom in isa.ATOMS if atom.mnk is not None and atom.operands["a"].dtype in FNUZ)
SIZES = [{"M": 37, "N": 40}]


def types(atom: Atom) -> tuple[DType, DType]:
    a, b = (atom.operands[name].dtype for name in "ab")
    assert a is not None
    assert b is not None
    return a, b


def product(atom: Atom, loaded: Atom) -> Kernel:
    """C = A @ B^T with one wave, a tile of 32 x 32 and 32 of k, of which B lies as `loaded` reads it."""
    left, right = types(atom)

    def multiply(A: Tensor, B: Tensor, C: Tensor) -> None:
        tag(A, lambda m, k: {"m": m, "k": k})
        tag(B, lambda n, k: {"n": n, "k": k})
        m, n = block_id((ceil_div(A.shape[0], 32), ceil_div(B.shape[0], 32)))
        mm, other = (mfma(each).over(waves=(1, 1), tile=(32, 32), k=32) for each in (atom, loaded))
        a, b, c = registers(left, mm.A), registers(right, other.B), registers(f32, mm.C)
        copy(A.tile((32, 32), (m, 0)), a, via=isa.global_load, edge=0)
        copy(B.tile((32, 32), (n, 0)), b, via=isa.global_load, edge=0)
        vmem.wait(0)
        mma(mm, c, a, b, init=True)
        assert_covers(c.tag.k, 0, 32)
        copy(c, C.tile((32, 32), (m, n)), via=isa.global_store, edge=0)
        assert_written_once(C, lambda m, n: {"m": m, "n": n})

    multiply.__annotations__ |= {"A": Tensor["M 32", left], "B": Tensor["N 32", right], "C": Tensor["M N", f32]}
    return kernel(target=gfx942, threads=64)(multiply).trace()


def test_there_are_products_of_both_formats_in_both_shapes() -> None:
    assert {(types(atom), atom.mnk) for atom in MATRIX} == {
        ((a, b), mnk) for a in FNUZ for b in FNUZ for mnk in ((32, 32, 16), (16, 16, 32))
    }


@pytest.mark.parametrize("atom", MATRIX, ids=str)
def test_a_product_is_proved_and_its_text_and_machine_code_are_right(atom: Atom) -> None:
    made = product(atom, atom)

    assert isinstance(verify(made, solver="z3").verdict, Proved)
    assert validate(made, SIZES, seeds=[0, 1]).right
    assert validate_code(made, SIZES, seeds=2).right


def test_the_formats_are_those_of_the_product() -> None:
    """Every pair of numbers of the two formats, one in a row, beside their product in NumPy."""
    made = product(isa.mfma_f32_16x16x32_fp8_bf8, isa.mfma_f32_16x16x32_fp8_bf8)
    codes = [code for code in range(256) if code != 0x80]  # NaN
    left, right = (np.zeros((len(codes), 32), np.uint8) for _ in range(2))
    left[:, 0] = right[:, 0] = codes
    a, b = left.view(e4m3fnuz.numpy), right.view(e5m2fnuz.numpy)
    found = interpret(made, a, b, np.zeros((len(codes), len(codes)), np.float32), tags=False)["C"]

    np.testing.assert_array_equal(found, np.outer(a[:, 0].astype(np.float64), b[:, 0].astype(np.float64)))


@pytest.mark.parametrize("atom", MATRIX, ids=str)
def test_fragments_of_another_instruction_are_refuted(atom: Atom) -> None:
    other = next(each for each in MATRIX if types(each) == types(atom) and each.mnk != atom.mnk)
    found = verify(product(atom, other), solver="z3").verdict

    assert isinstance(found, Refuted)
    assert found.counterexample.code in ("I1", "I2")


def test_arithmetic_on_the_formats_is_not_emitted() -> None:
    @kernel(target=gfx942, threads=64)
    def doubled(A: Tensor["M 32", e4m3fnuz], C: Tensor["M 32", f32]) -> None:
        held = registers(e4m3fnuz, mfma(isa.mfma_f32_32x32x16_fp8_fp8).over(waves=(1, 1), tile=(32, 32), k=32).A)
        copy(A.tile((32, 32), (0, 0)), held, via=isa.global_load, edge=0)
        vmem.wait(0)
        copy(held.to(f32), C.tile((32, 32), (0, 0)), edge=0)

    with pytest.raises(ArgusError, match="a conversion of e4m3fnuz") as refused:
        hip_text(doubled.trace())
    assert refused.value.diagnostic.code == "E501"
    assert refused.value.diagnostic.primary.span.frame is not None  # the user's line
