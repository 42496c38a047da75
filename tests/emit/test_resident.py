"""Resident blocks: how many of a kernel one processor must have the registers for, which changes nothing else."""

# ruff: noqa: UP037
# pyright: reportInvalidTypeForm=false, reportUndefinedVariable=false

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.core.ir.pretty import pretty
from argus.core.query import Budget
from argus.core.serde import read, write
from argus.core.target import Target
from argus.core.verdict import Proved, Refuted
from argus.emit.build import build
from argus.emit.cuda.ptxas import AssemblerReport
from argus.emit.cuda.text import cuda_text
from argus.emit.hip.text import hip_texts
from argus.language import (
    Template,
    Tensor,
    block_id,
    ceil_div,
    copy,
    f32,
    gfx942,
    kernel,
    load,
    role,
    sm_90a,
    spread,
    tag,
    warpgroup,
)
from argus.verifier.kernel import verify

NO_RUNS = evolve(Budget(), runs=0)


def rows(target: Target, resident: int, *, threads: int = 256, steps: int = 1) -> Template:
    """A kernel that copies rows, `steps` elements a thread."""

    @kernel(target=target, threads=threads, resident=resident)
    def copied(A: Tensor["M N", f32], B: Tensor["M N", f32]) -> None:
        tag(A, lambda m, n: {"m": m, "n": n})
        (m,) = block_id((ceil_div(A.shape[0], steps),))
        by = spread((steps, threads), threads=threads, vector=1)
        copy(load(A.tile((steps, threads), (m, 0)), by, edge=0), B.tile((steps, threads), (m, 0)), edge=0)

    return copied


def verdict_of(template: Template) -> Proved | Refuted | object:
    return verify(template, solver="z3", budget=NO_RUNS).verdict


def test_the_text_names_them() -> None:
    assert "__launch_bounds__(256, 8)" in cuda_text(rows(sm_90a, 8).trace()).text
    assert "__launch_bounds__(256, 1)" in cuda_text(rows(sm_90a, 1).trace()).text
    assert "THREADS(256, 8)" in hip_texts(rows(gfx942, 8).trace())[0]
    assert "THREADS(256, 1)" in hip_texts(rows(gfx942, 1).trace())[0]


def test_the_compiler_uses_fewer_registers(tmp_path: Path) -> None:
    def registers(resident: int) -> int:
        made = build(rows(sm_90a, resident, steps=32).trace(), directory=tmp_path / str(resident))
        assert isinstance(made.report, AssemblerReport)
        return made.report.registers

    assert registers(4) <= 64
    assert registers(1) > registers(8)
    assert registers(8) <= 32


def test_a_configuration_gives_them() -> None:
    chosen = evolve(rows(sm_90a, 1), resident=None, configs={"four": Four(), "one": object()}, threads=256)

    assert chosen.trace("four").resident == 4
    assert chosen.trace("one").resident == 1


class Four:
    resident = 4


def test_they_are_part_of_a_kernel_that_is_stored_and_printed() -> None:
    made = rows(sm_90a, 8).trace()
    (back,) = read(write((made,)))

    assert isinstance(back, Kernel)
    assert back.resident == 8
    assert ", 8 resident blocks\n" in pretty(back) == pretty(made)
    assert "resident" not in pretty(rows(sm_90a, 1).trace())


@pytest.mark.parametrize(("resident", "fits"), [(1, True), (8, True), (9, False)])
@pytest.mark.parametrize("target", [sm_90a, gfx942])
def test_no_more_waves_than_a_processor_holds(target: Target, resident: int, *, fits: bool) -> None:
    if fits:
        assert rows(target, resident).trace().resident == resident
        return
    with pytest.raises(ArgusError) as caught:
        rows(target, resident).trace()
    assert caught.value.diagnostic.code == "E232"
    assert "ask for 1 to 8 blocks" in caught.value.diagnostic.help


def test_none_or_less_is_refused() -> None:
    for resident in (0, -1):
        with pytest.raises(ArgusError) as caught:
            rows(sm_90a, resident).trace()
        assert caught.value.diagnostic.code == "E106"


def test_roles_that_divide_the_registers_are_alone() -> None:
    @kernel(target=sm_90a, threads=256, resident=2)
    def divided(A: Tensor["M", f32]) -> None:
        block_id((A.shape[0],))
        with role("one", warpgroup(0), registers=40):
            pass
        with role("other", warpgroup(1), registers=232):
            pass

    with pytest.raises(ArgusError) as caught:
        divided.trace()
    assert caught.value.diagnostic.code == "E232"
    assert "request registers" in caught.value.diagnostic.message


def test_tiles_must_fit_into_the_registers_of_so_many() -> None:
    """32 elements a thread fit into 40 registers of six blocks of 256 threads, not into the 32 of eight."""
    assert isinstance(verdict_of(rows(sm_90a, 6, steps=32)), Proved)
    found = verdict_of(rows(sm_90a, 8, steps=64))

    assert isinstance(found, Refuted)
    assert found.counterexample.code == "I22"
    assert "has 32 for each of 8 resident blocks" in found.counterexample.message
