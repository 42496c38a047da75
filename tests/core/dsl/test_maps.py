"""Tensor maps in memory: the traced statements, and errors."""

# ruff: noqa: ARG001
# Reason: bodies share one signature, whatever they use of it.

from __future__ import annotations

from typing import Any, cast

import pytest

from argus.core.diagnostic import ArgusError
from argus.core.ir import Alloc, Copy, Edit, walk
from argus.core.ir.pretty import pretty
from argus.language import (
    Tensor,
    barrier,
    bf16,
    bulk,
    copy,
    elected,
    gfx942,
    kernel,
    loop,
    registers,
    shared,
    spread,
    tensor_map,
    tma,
)
from tests.core.dsl.hopper_tracing import refused, traced
from tests.core.dsl.tracing import Fault, Faults

faulty = Faults()


def test_a_map_is_edited_released_acquired_and_used() -> None:
    def body(A: Tensor, C: Tensor) -> None:
        out, box = tensor_map(), shared(bf16, (64, 16), swizzle=32)
        with elected():
            out.replace(C)
            out.release()
            out.acquire()
            copy(box, C.tile((64, 16), (0, 0)), via=tma, edge=0, through=out)
            bulk.commit()

    found = traced(body, threads=128)
    edits = [stmt for stmt in walk(found.body) if isinstance(stmt, Edit)]
    (store,) = [stmt for stmt in walk(found.body) if isinstance(stmt, Copy)]
    (made,) = [s.buffer for s in walk(found.body) if isinstance(s, Alloc) and s.buffer.space == "map"]
    assert [stmt.step for stmt in edits] == ["replace", "release", "acquire"]
    assert {stmt.map for stmt in edits} == {made}
    assert edits[0].tensor is not None
    assert edits[0].tensor.buffer.name == "C"
    assert store.through is made
    lines = pretty(found)
    assert f"replace {made.name} of C" in lines
    assert f"through {made.name}\n" in lines


@faulty("E208", "is made inside a role, loop or branch")
def map_in_a_loop(A: Tensor, C: Tensor) -> None:
    for _ in loop(2):
        tensor_map()


@faulty("E106", "a tensor map describes a global tensor")
def map_of_shared_memory(A: Tensor, C: Tensor) -> None:
    out = tensor_map()
    out.replace(shared(bf16, (64, 16)))


@faulty("E106", "a tensor map cannot describe a computed view")
def map_of_a_gather(A: Tensor, C: Tensor) -> None:
    out = tensor_map()
    out.replace(A.gather((64, 16), lambda r, c: (r, c), outside=0))


@faulty("E106", "a copy goes through a tensor map")
def through_a_barrier(A: Tensor, C: Tensor) -> None:
    box, other = shared(bf16, (64, 16), swizzle=32), cast(Any, barrier(1))
    with elected():
        copy(box, C.tile((64, 16), (0, 0)), via=tma, edge=0, through=other)


@faulty("E501", "through a tensor map in memory is not built yet")
def load_through_a_map(A: Tensor, C: Tensor) -> None:
    out, box, full = tensor_map(), shared(bf16, (64, 16), swizzle=32), barrier(1)
    with elected():
        copy(A.tile((64, 16), (0, 0)), box, via=tma, signal=full, edge=0, through=out)


@faulty("E501", "through a tensor map in memory is not built yet")
def ordinary_store_through_a_map(A: Tensor, C: Tensor) -> None:
    out, x = tensor_map(), registers(bf16, spread((48, 16), threads=384, vector=1))
    copy(x, C.tile((48, 16), (0, 0)), edge=0, through=out)


@faulty.parametrize()
def test_fault(fault: Fault) -> None:
    found = refused(fault.body)
    assert found.code == fault.code, found
    assert [word for word in fault.words if word not in found.message] == [], found.message


def test_other_targets_have_no_maps() -> None:
    def probe(C: Tensor["M N", bf16]) -> None:
        tensor_map()

    with pytest.raises(ArgusError) as caught:
        kernel(target=gfx942, threads=256)(probe).trace()
    assert caught.value.diagnostic.code == "E501"
