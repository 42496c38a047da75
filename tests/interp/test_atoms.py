"""Every instruction in a kernel of its own: proved, bit for bit what NumPy says, and refuted when misused.

The kernels of one instruction and the numbers of each are in tests/interp; here they are verified.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from argus.core.atom import Atom
from argus.core.atoms import gfx942 as isa
from argus.core.ir import Kernel
from argus.core.verdict import Proved, Refuted
from argus.interp.run import run
from argus.language import (
    Int,
    Swizzle,
    Tensor,
    assert_covers,
    assert_equals,
    assert_written_once,
    assume,
    bf16,
    block_id,
    ceil_div,
    copy,
    f32,
    gfx942,
    global_load,
    i8,
    kernel,
    lds,
    mfma,
    mma,
    registers,
    scalar,
    shared,
    spread,
    sync,
    tag,
    vmem,
)
from argus.verifier.kernel import verify
from tests.interp import test_eight_bit_products
from tests.interp.programs import m_and_k, moved, multiplied

LOAD, STORE = isa.global_load[0], isa.global_store[0]
BYTES = (isa.global_load_b8, isa.global_store_b8)
LOADS, STORES = (*isa.global_load, *isa.buffer_load), (*isa.global_store, *isa.buffer_store)
MATRIX = tuple(atom for atom in isa.ATOMS if atom.mnk is not None and atom.operands["a"].dtype is bf16)
"""Those of the kernels' type; the corpus has kernels of those of f16."""
F16 = Path(__file__).parent.parent / "corpus" / "proved" / "mfma_of_f16.py"


def alone(atom: Atom) -> Kernel:
    """B = A, 64 rows of 32, with the instruction on the way."""
    if atom in LOADS:
        return moved(atom, STORE)
    if atom in STORES:
        return moved(LOAD, atom)
    if atom in isa.ds_read:
        return moved(LOAD, STORE, (isa.ds_write_b128, atom))
    return moved(LOAD, STORE, (atom, isa.ds_read_b128))


def straight(atom: Atom, *, waited: bool = True) -> Kernel:
    """B = A, 64 rows of 32, from global to swizzled shared memory without registers."""

    @kernel(target=gfx942, threads=64)
    def move(A: Tensor["M 32", bf16], B: Tensor["M 32", bf16]) -> None:
        tag(A, m_and_k)
        (m,) = block_id((ceil_div(A.shape[0], 64),))
        tile = shared(bf16, (64, 32), swizzle=Swizzle(2, 2, 3))
        by = spread((64, 32), threads=64, vector=atom.vector_bits // 16)
        copy(A.tile((64, 32), (m, 0)), tile, via=atom, by=by, edge=0)
        assume(A.shape[0] < 1 << 20)
        if waited:
            vmem.wait(0)
        sync()
        held = registers(bf16, spread((64, 32), threads=64, vector=4))
        copy(tile, held, via=isa.ds_read_b64)
        lds.wait(0)
        copy(held, B.tile((64, 32), (m, 0)), via=STORE, edge=0)
        assert_written_once(B, m_and_k)

    return move.trace()


def test_a_copy_without_registers_is_waited_for() -> None:
    given = np.arange(70 * 32, dtype=np.uint16).reshape(70, 32).view(bf16.numpy)
    made = straight(isa.buffer_load_lds)
    outcome = run(made, {"M": 70}, {"A": given})
    assert np.array_equal(outcome.arrays["B"].view(np.uint16), given.view(np.uint16))
    assert standing(made) == "proved"
    assert standing(straight(isa.buffer_load_lds, waited=False)) == "I31"


def standing(made: Kernel) -> str:
    match verify(made, solver="z3").verdict:
        case Proved():
            return "proved"
        case Refuted(counterexample=found):
            return found.code
        case other:
            return str(other)


def test_every_instruction_is_tried() -> None:
    tried = (
        *LOADS,
        *STORES,
        *BYTES,
        *MATRIX,
        *test_eight_bit_products.MATRIX,
        isa.buffer_load_lds,
        *isa.ds_read,
        *isa.ds_write,
    )
    text = F16.read_text(encoding="utf-8")
    of_f16 = {atom.name for atom in isa.ATOMS if f"{atom.name}," in text}
    assert {*of_f16, *(atom.name for atom in tried)} == {atom.name for atom in isa.ATOMS}


@pytest.mark.share(4)
@pytest.mark.parametrize(
    "atom", [atom for atom in isa.ATOMS if atom.mnk is None and not atom.direct and atom not in BYTES], ids=str
)
def test_a_copy_is_proved_and_moves_its_bits(atom: Atom) -> None:
    made = alone(atom)
    wanted = "I28" if atom.edge == "range_zero" else "proved"  # 4 GiB of rows are beyond a descriptor
    assert standing(made) == wanted
    given = np.arange(70 * 32, dtype=np.uint16).reshape(70, 32).view(bf16.numpy)
    outcome = run(made, {"M": 70}, {"A": given})
    assert np.array_equal(outcome.arrays["B"].view(np.uint16), given.view(np.uint16))


@pytest.mark.parametrize("atom", BYTES, ids=str)
def test_a_copy_of_single_bytes_is_proved_and_moves_them(atom: Atom) -> None:
    @kernel(target=gfx942, threads=64)
    def move(A: Tensor["R M", i8], B: Tensor["R M", i8]) -> None:
        r, m = block_id((A.shape[0], ceil_div(A.shape[1], 256)))
        held = registers(i8, spread((256,), threads=64, vector=1))
        copy(A[r].tile((256,), (m,)), held, via=atom if atom is isa.global_load_b8 else None, edge=0)
        vmem.wait(0)
        copy(held, B[r].tile((256,), (m,)), via=atom if atom is isa.global_store_b8 else None, edge=0)
        assert_equals(B, lambda r, n: scalar(A[r, n]))

    made = move.trace()
    assert standing(made) == "proved"
    given = np.arange(2002).astype(np.int8).reshape(2, 1001)
    assert np.array_equal(run(made, {"R": 2, "M": 1001}, {"A": given}).arrays["B"], given)


@pytest.mark.share(4)
@pytest.mark.parametrize("atom", [*isa.buffer_load, *isa.buffer_store], ids=str)
def test_a_buffer_instruction_is_proved_within_its_descriptor(atom: Atom) -> None:
    load, store = (atom, STORE) if atom in LOADS else (LOAD, atom)
    assert standing(limited(load, store)) == "proved"


def limited(load: Atom, store: Atom) -> Kernel:
    @kernel(target=gfx942, threads=64)
    def move(A: Tensor["M 32", bf16], B: Tensor["M 32", bf16]) -> None:
        tag(A, m_and_k)
        assume(A.shape[0] < 1 << 20)
        (m,) = block_id((ceil_div(A.shape[0], 64),))
        held = registers(bf16, spread((64, 32), threads=64, vector=8))
        copy(A.tile((64, 32), (m, 0)), held, via=load, edge=0)
        vmem.wait(0)
        copy(held, B.tile((64, 32), (m, 0)), via=store, edge=0)
        assert_written_once(B, m_and_k)

    return move.trace()


@pytest.mark.share(2)
@pytest.mark.parametrize("atom", MATRIX, ids=str)
def test_a_matrix_instruction_multiplies_what_its_maps_say(atom: Atom) -> None:
    """K may be larger than one execution covers: what is proved is that the sum then misses a k."""
    assert standing(multiplied(atom)) in ("I3", "I4")
    assert standing(product(atom, atom)) == "proved"


@pytest.mark.share(2)
@pytest.mark.parametrize("atom", MATRIX, ids=str)
def test_fragments_of_another_instruction_are_refuted(atom: Atom) -> None:
    other = MATRIX[1 - MATRIX.index(atom)]
    assert standing(product(atom, other)) in ("I1", "I2", "I3", "I4")


def product(atom: Atom, stored: Atom) -> Kernel:
    """C = A @ B^T with one wave, a tile of 32 x 32 and 16 of k; C is taken to lie as `stored` leaves it."""

    @kernel(target=gfx942, threads=64)
    def multiply(A: Tensor["M 16", bf16], B: Tensor["N 16", bf16], C: Tensor["M N", f32]) -> None:
        tag(A, lambda m, k: {"m": m, "k": k})
        tag(B, lambda n, k: {"n": n, "k": k})
        m, n = block_id((ceil_div(A.shape[0], 32), ceil_div(B.shape[0], 32)))
        mm = mfma(atom).over(waves=(1, 1), tile=(32, 32), k=16)
        layout = mfma(stored).over(waves=(1, 1), tile=(32, 32), k=16).C
        a, b, c = registers(bf16, mm.A), registers(bf16, mm.B), registers(f32, layout)
        copy(A.tile((32, 16), (m, 0)), a, via=global_load, edge=0)
        copy(B.tile((32, 16), (n, 0)), b, via=global_load, edge=0)
        vmem.wait(0)
        mma(mm, c, a, b, init=True)
        assert_covers(c.tag.k, 0, 16)
        copy(c, C.tile((32, 32), (m, n)), via=isa.global_store, edge=0)
        assert_written_once(C, lambda m, n: {"m": m, "n": n})

    return multiply.trace()


@pytest.mark.parametrize(("atom", "width"), [(isa.global_load[3], 4), (isa.global_store[3], 4)], ids=str)
def test_a_wide_access_of_narrow_rows_is_refuted(atom: Atom, width: int) -> None:
    """Rows of a multiple of 4 elements, moved 8 at a time."""
    load, store = (atom, STORE) if atom in LOADS else (LOAD, atom)

    @kernel(target=gfx942, threads=64)
    def move(A: Tensor["M K", bf16], B: Tensor["M K", bf16]) -> None:
        tag(A, m_and_k)
        assume(A.shape[1] % width == 0)
        m, k = block_id((ceil_div(A.shape[0], 64), ceil_div(A.shape[1], 32)))
        held = registers(bf16, spread((64, 32), threads=64, vector=8))
        copy(A.tile((64, 32), (m, k)), held, via=load, edge=0)
        vmem.wait(0)
        copy(held, B.tile((64, 32), (m, k)), via=store, edge=0)
        assert_written_once(B, m_and_k)

    assert standing(move.trace()) == "I19"


@pytest.mark.share(3)
@pytest.mark.parametrize("atom", [*isa.ds_read, *isa.ds_write], ids=str)
def test_a_shared_access_off_its_alignment_is_refuted(atom: Atom) -> None:
    """Rows of 36 elements: 72 bytes, a multiple of 8 and not of 16; and of 34, of neither."""
    write, read = (isa.ds_write_b64, atom) if atom in isa.ds_read else (atom, isa.ds_read_b64)
    assert standing(skewed(write, read, 34)) == "I19"
    assert standing(skewed(write, read, 36)) == ("proved" if atom.vector_bits <= 64 else "I19")


def skewed(write: Atom, read: Atom, pitch: int) -> Kernel:
    @kernel(target=gfx942, threads=64)
    def move(A: Tensor["M 32", bf16], B: Tensor["M 32", bf16]) -> None:
        tag(A, m_and_k)
        (m,) = block_id((ceil_div(A.shape[0], 64),))
        by = spread((64, 32), threads=64, vector=8)
        held, again = registers(bf16, by), registers(bf16, by)
        staged = shared(bf16, (64, pitch)).gather((64, 32), same)
        copy(A.tile((64, 32), (m, 0)), held, via=LOAD, edge=0)
        vmem.wait(0)
        copy(held, staged, via=write)
        lds.wait(0)
        copy(staged, again, via=read)
        lds.wait(0)
        copy(again, B.tile((64, 32), (m, 0)), via=STORE, edge=0)
        assert_written_once(B, m_and_k)

    return move.trace()


def same(row: Int, column: Int) -> tuple[Int, Int]:
    return row, column
