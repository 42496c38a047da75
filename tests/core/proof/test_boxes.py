"""What copies of boxes and matrices, and descriptors of products, demand of layouts."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from argus.core import algebra
from argus.core.algebra import TRUE, add, const, sym
from argus.core.atoms.sm_90a import tma
from argus.core.ir import Alloc, Assume, Copy, Kernel, Mma, Staged, Strided, View
from argus.core.layout import Swizzle
from argus.core.proof.dataflow.access import Accesses
from argus.core.proof.dataflow.timeline import timeline
from argus.core.proof.limits import boxes
from argus.core.proof.obligation import Obligation
from argus.core.verdict import Proved, Refuted
from argus.verifier.kernel import verify
from property_tests.programs import exchanged
from property_tests.role_programs import ROLES
from tests.core.proof.queries import failing, obligations_of, read
from tests.core.proof.rings import Drained, changed, edited, every, of_role, ring

KERNEL = ring(Drained(stages=2))
STORES = ROLES["stores_of_boxes"]


def of(kernel: Kernel, code: str, words: str) -> list[Obligation]:
    return [each for each in obligations_of(kernel) if each.invariant == code and words in each.what]


# -- boxes of a tensor ---------------------------------------------------------------------------------------


def test_rows_of_a_tensor_are_multiples_of_sixteen_bytes_apart() -> None:
    found = of(KERNEL, "I19", "multiples of 16 bytes apart")
    assert {each.what.split("`")[1] for each in found} == {"A", "B"}
    assert "I19" not in failing(KERNEL)


def test_rows_of_any_length_are_not() -> None:
    assert [size.name for size in KERNEL.sizes] == ["M", "K", "N"]
    k = sym(KERNEL.sizes[1])
    (wide,) = [stmt for stmt in every(KERNEL, Assume) if stmt.cond is algebra.eq(algebra.mod(k, 8), 0)]
    assert "I19" in failing(edited(KERNEL, wide))
    assert "I19" in failing(changed(KERNEL, wide, cond=algebra.eq(algebra.mod(k, 4), 0)))
    assert "I19" not in failing(changed(KERNEL, wide, cond=algebra.eq(algebra.mod(k, 16), 0)))


@pytest.mark.parametrize("fault", ["align", "strides"])
def test_a_tensor_whose_elements_do_not_lie_side_by_side_has_no_boxes(fault: str) -> None:
    tensor = KERNEL.parameters[0]
    assert isinstance(tensor.layout, Strided)
    other: Any = (
        evolve(tensor, align=8)
        if fault == "align"
        else evolve(tensor, layout=Strided((tensor.layout.strides[0], const(2))))
    )
    made = exchanged(KERNEL, {id(tensor): other}, fault).kernel
    assert "I19" in failing(evolve(made, parameters=(other, *KERNEL.parameters[1:])))


@pytest.mark.share(6, among="permutations")
@pytest.mark.parametrize("span", [0, 64, 128])
def test_a_copy_permutes_as_the_layout_of_its_tile_does(span: int) -> None:
    (atom,) = [each for each in tma.tma_load if each.box is not None and each.box.span == span]
    first = of_role(KERNEL, "load", Copy)[0]
    assert str(first.atom) == "tma_load_2d_sw32"
    other = changed(KERNEL, first, atom=atom)
    found = [each for each in of(other, "I17", "permutes chunks") if each.goal is not TRUE]
    assert len(found) == 1
    assert found[0].witness[1] == ("span", f"{span} bytes")
    report = verify(other, solver="z3")
    assert isinstance(report.verdict, Refuted)
    assert report.verdict.counterexample.code == "I17"


@pytest.mark.share(6, among="permutations")
@pytest.mark.parametrize("span", [0, 64, 128])
def test_a_store_permutes_as_the_layout_of_its_tile_does(span: int) -> None:
    (atom,) = [each for each in tma.tma_store if each.box is not None and each.box.span == span]
    store = of_role(STORES, "math", Copy)[-1]
    assert store.target.buffer.space == "global"
    own = store.atom.box
    assert own is not None
    assert "I17" not in failing(STORES)
    if span != own.span:
        report = verify(changed(STORES, store, atom=atom), solver="z3")
        assert isinstance(report.verdict, Refuted)
        assert report.verdict.counterexample.code == "I17"


def test_a_buffer_of_another_swizzle_is_refuted_for_copies_and_products() -> None:
    shared = next(stmt.buffer for stmt in every(KERNEL, Alloc) if stmt.buffer.name == "slots_a")
    assert isinstance(shared.layout, Staged)
    assert shared.layout.swizzle == Swizzle(1, 3, 3)
    for swizzle in (None, Swizzle(2, 3, 3), Swizzle(1, 4, 3), Swizzle(1, 3, 4)):
        other = evolve(shared, layout=Staged(shared.layout.layout, swizzle))
        made = exchanged(KERNEL, {id(shared): other}, "another swizzle").kernel
        found = [each.what for each in obligations_of(made) if each.invariant == "I17" and each.goal is not TRUE]
        assert "a matrix descriptor can encode the layout of `slots_a`" in found
        assert any("permutes chunks of `slots_a`" in what for what in found)


def test_every_operand_in_shared_memory_has_a_descriptor() -> None:
    (product,) = of_role(KERNEL, "math", Mma)
    found = list(boxes.descriptor_obligations(timeline(read(KERNEL).kernel)))
    assert [each.what.split("`")[1] for each in found] == [product.a.buffer.name, product.b.buffer.name]
    assert all(each.goal is TRUE for each in found)


# -- matrices ------------------------------------------------------------------------------------------------


def matrices(kernel: Kernel) -> list[Copy]:
    return [stmt for stmt in of_role(kernel, "math", Copy) if "matrix" in str(stmt.atom)]


def judged(kernel: Kernel) -> set[str]:
    found = [each for each in obligations_of(kernel) if "moves rows of" in each.what or each.invariant == "I20"]
    assert {each.invariant for each in found} == {"I19", "I20"}
    return {each.invariant for each in found if each.goal is not TRUE or each.unknown}


def test_rows_of_matrices_are_aligned_runs() -> None:
    for name in ("stores_of_boxes", "cooperative", "pingpong", "store_under_the_next_tile"):
        assert matrices(ROLES[name])
        assert judged(ROLES[name]) == set()


def shifted(view: View, columns: int) -> View:
    return evolve(view, at=(*view.at[:-1], algebra.mod(add(view.at[-1], columns), view.buffer.shape[-1])))


@pytest.mark.parametrize("columns", [1, 4])
def test_rows_that_begin_within_a_chunk_are_not(columns: int) -> None:
    kernel = ROLES["pingpong"]
    (stmt,) = matrices(kernel)
    assert judged(changed(kernel, stmt, target=shifted(stmt.target, columns))) == {"I19", "I20"}


def test_rows_a_chunk_further_on_are() -> None:
    kernel = ROLES["pingpong"]
    (stmt,) = matrices(kernel)
    assert judged(changed(kernel, stmt, target=shifted(stmt.target, 8))) == set()


def test_rows_that_the_layout_scatters_are_not() -> None:
    kernel = ROLES["pingpong"]
    (stmt,) = matrices(kernel)
    buffer = stmt.target.buffer
    assert isinstance(buffer.layout, Staged)
    for swizzle in (Swizzle(1, 2, 3), Swizzle(2, 1, 4)):
        other = evolve(buffer, layout=Staged(buffer.layout.layout, swizzle))
        made = exchanged(kernel, {id(buffer): other}, "rows in pieces").kernel
        assert judged(made) == {"I19"}


def test_a_tile_whose_place_does_not_come_apart_is_in_doubt() -> None:
    kernel = read(ROLES["pingpong"]).kernel
    line = timeline(kernel)
    (step,) = [each for each in line.steps if isinstance(each.stmt, Copy) and "matrix" in str(each.stmt.atom)]
    stmt = step.stmt
    assert isinstance(stmt, Copy)
    access = Accesses(line).of(step)[-1]
    memory = stmt.atom.operands["target"]
    found = list(boxes.matrix_copy_obligations(step, stmt, access, memory, None, ()))
    assert [each.unknown for each in found] == ["a tile that moves inside one buffer"]


def test_the_kernels_as_they_are_proved() -> None:
    for kernel in (KERNEL, STORES):
        assert isinstance(verify(kernel, solver="z3").verdict, Proved)
