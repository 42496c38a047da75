"""Products of 8-bit elements on gfx942, FNUZ floats and integers: proved, executed as text and machine code, and
refuted with wrong lanes.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from attrs import evolve

from argus.core.atom import Atom
from argus.core.atoms import gfx942 as isa
from argus.core.diagnostic import ArgusError
from argus.core.dtype import DType, e4m3fnuz, e5m2fnuz, i8
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
    i32,
    kernel,
    loop,
    mfma,
    mma,
    registers,
    tag,
    vmem,
    zeros,
)
from argus.runtime.cpu.validate import every_text, validate
from argus.runtime.machine.validate import validate_code
from argus.verifier.kernel import verify

FNUZ = (e4m3fnuz, e5m2fnuz)
PAIRS = (*product(FNUZ, FNUZ), (i8, i8))
MATRIX = tuple(atom for atom in isa.ATOMS if atom.mnk is not None and atom.operands["a"].dtype in (*FNUZ, i8))
SIZES = [{"M": 37, "N": 40}]


def types(atom: Atom) -> tuple[DType, DType]:
    a, b = (atom.operands[name].dtype for name in "ab")
    assert a is not None
    assert b is not None
    return a, b


def multiplied(atom: Atom, loaded: Atom) -> Kernel:
    """C = A @ B^T with one wave, a tile of 32 x 32 and 32 of k, of which B lies as `loaded` reads it."""
    left, right = types(atom)
    sums = i32 if left is i8 else f32

    def multiply(A: Tensor, B: Tensor, C: Tensor) -> None:
        tag(A, lambda m, k: {"m": m, "k": k})
        tag(B, lambda n, k: {"n": n, "k": k})
        m, n = block_id((ceil_div(A.shape[0], 32), ceil_div(B.shape[0], 32)))
        mm, other = (mfma(each).over(waves=(1, 1), tile=(32, 32), k=32) for each in (atom, loaded))
        a, b, c = registers(left, mm.A), registers(right, other.B), registers(sums, mm.C)
        copy(A.tile((32, 32), (m, 0)), a, via=isa.global_load, edge=0)
        copy(B.tile((32, 32), (n, 0)), b, via=isa.global_load, edge=0)
        vmem.wait(0)
        mma(mm, c, a, b, init=True)
        assert_covers(c.tag.k, 0, 32)
        copy(c, C.tile((32, 32), (m, n)), via=isa.global_store, edge=0)
        assert_written_once(C, lambda m, n: {"m": m, "n": n})

    multiply.__annotations__ |= {"A": Tensor["M 32", left], "B": Tensor["N 32", right], "C": Tensor["M N", sums]}
    return kernel(target=gfx942, threads=64)(multiply).trace()


def test_there_are_products_of_both_formats_in_both_shapes() -> None:
    assert {(types(atom), atom.mnk) for atom in MATRIX} == {
        (pair, mnk) for pair in PAIRS for mnk in ((32, 32, 16), (16, 16, 32))
    }


@pytest.mark.share(40, among="interp: eight bit products")
@pytest.mark.parametrize("atom", MATRIX, ids=str)
def test_a_product_is_proved_and_its_text_and_machine_code_are_right(atom: Atom) -> None:
    made = multiplied(atom, atom)

    assert isinstance(verify(made, solver="z3").verdict, Proved)
    assert validate(made, SIZES, seeds=[0, 1]).right
    assert validate_code(made, SIZES, seeds=2).right


def test_the_formats_are_those_of_the_product() -> None:
    """Every pair of numbers of the two formats, one in a row, beside their product in NumPy."""
    made = multiplied(isa.mfma_f32_16x16x32_fp8_bf8, isa.mfma_f32_16x16x32_fp8_bf8)
    codes = [code for code in range(256) if code != 0x80]  # NaN
    left, right = (np.zeros((len(codes), 32), np.uint8) for _ in range(2))
    left[:, 0] = right[:, 0] = codes
    a, b = left.view(e4m3fnuz.numpy), right.view(e5m2fnuz.numpy)
    found = interpret(made, a, b, np.zeros((len(codes), len(codes)), np.float32), tags=False)["C"]

    np.testing.assert_array_equal(found, np.outer(a[:, 0].astype(np.float64), b[:, 0].astype(np.float64)))


def every_pair_of_integers() -> tuple[Kernel, dict[str, np.ndarray], np.ndarray]:
    """A kernel, its operands with every two numbers in one element of C, and their products."""
    numbers = np.arange(-128, 128, dtype=np.int8)
    left, right = (np.zeros((256, 32), np.int8) for _ in range(2))
    left[:, 5] = right[:, 5] = numbers
    left[:, 21] = right[::-1, 21] = 1  # one more product of each sum
    made = multiplied(isa.mfma_i32_16x16x32_i8, isa.mfma_i32_16x16x32_i8)
    return made, {"A": left, "B": right}, left.astype(np.int64) @ right.T.astype(np.int64)


def test_numbers_below_zero_are_multiplied_as_such() -> None:
    made, given, products = every_pair_of_integers()
    found = interpret(made, given["A"], given["B"], np.zeros((256, 256), np.int32), tags=False)["C"]

    np.testing.assert_array_equal(found, products)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("operand(&registers", "0x7f7f7f7f7f7f7f7fL & operand(&registers", id="signs cut off"),
        pytest.param("operand(&registers", "1 + operand(&registers", id="a carry into the next element"),
    ],
)
def test_integers_with_other_signs_are_found(old: str, new: str) -> None:
    made, _, _ = every_pair_of_integers()
    (text, *_) = every_text(made)
    assert old in text.text
    assert validate(made, SIZES, seeds=[0], made=text).right

    assert not validate(made, SIZES, seeds=[0], made=evolve(text, text=text.text.replace(old, new, 1))).right


@pytest.mark.nightly
def test_a_sum_of_2_to_the_17_products_wraps_around() -> None:
    """What the bound of K excludes: products of -128 are 2^14, and 2^17 of them are the least i32."""
    most = 1 << 17

    @kernel(target=gfx942, threads=64)
    def multiply(A: Tensor["16 K", i8], B: Tensor["16 K", i8], C: Tensor["16 16", i32]) -> None:
        mm = mfma(isa.mfma_i32_16x16x32_i8).over(waves=(1, 1), tile=(16, 16), k=2048)
        a, b, c = registers(i8, mm.A), registers(i8, mm.B), zeros(i32, mm.C)
        for k in loop(ceil_div(A.shape[1], 2048)):
            copy(A.tile((16, 2048), (0, k)), a, via=isa.global_load, edge=0)
            copy(B.tile((16, 2048), (0, k)), b, via=isa.global_load, edge=0)
            vmem.wait(0)
            mma(mm, c, a, b)
        copy(c, C, via=isa.global_store)

    for count, expected in ((most - 32, (most - 32) << 14), (most, -(1 << 31))):
        given = np.full((16, count), -128, np.int8)
        found = interpret(multiply.trace(), given, given, np.zeros((16, 16), np.int32), tags=False)["C"]
        assert (found == expected).all()


@pytest.mark.share(40, among="interp: eight bit products")
@pytest.mark.parametrize("atom", MATRIX, ids=str)
def test_fragments_of_another_instruction_are_refuted(atom: Atom) -> None:
    other = next(each for each in MATRIX if types(each) == types(atom) and each.mnk != atom.mnk)
    found = verify(multiplied(atom, other), solver="z3").verdict

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
