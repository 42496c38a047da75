"""Waits and barriers of gfx942 stay where the program has them: in compiled code, and in code with seeded moves."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from attrs import frozen

from argus.core.ir import Copy, Kernel, Mma, Stmt, Sync, Wait, walk
from argus.emit.build import build
from argus.emit.hip.code_intervals import CodeIntervals, code_intervals, moved_warnings, numbers_of_lines
from argus.emit.hip.intervals import intervals, products_around
from argus.emit.hip.listing import MARK, Listed, listing
from argus.emit.hip.prelude import loosened
from argus.emit.hip.text import hip_statements, hip_texts, is_free
from argus.emit.hip.toolchain import compile_hip
from argus.emit.names import assign_names
from argus.kernels.attention import attention_64, attention_256
from argus.kernels.gemm import gemm
from argus.language import (
    Tensor,
    bf16,
    copy,
    ds_read_b128,
    eq,
    gfx942,
    kernel,
    lds,
    loop,
    registers,
    shared,
    spread,
    sync,
    vmem,
    when,
)
from argus.report.summary import artifact_lines
from benchmarks.cases import kernels_of, shipped_configurations
from benchmarks.held_waits import chosen
from benchmarks.shipped import families

SHIPPED = {
    "double buffer": lambda: gemm.trace("cdna3"),
    "ping-pong": lambda: gemm.trace("cdna3_pingpong"),
    "interleaved": lambda: gemm.trace("interleaved"),
    "attention": lambda: attention_64.trace("cdna3_causal"),
    "wide attention": lambda: attention_256.trace("cdna3"),
}


@frozen
class Compiled:
    kernel: Kernel
    assembly: str
    symbol: str
    statements: tuple[Stmt | None, ...]

    def read(self, assembly: str | None = None) -> CodeIntervals:
        return code_intervals(self.kernel, assembly or self.assembly, self.symbol, self.statements)

    @property
    def code(self) -> tuple[Listed, ...]:
        return listing(self.assembly, self.symbol)


@cache
def compiled(name: str, *, loose: bool = False) -> Compiled:
    made = SHIPPED[name]()
    text = loosened(hip_texts(made)[0]) if loose else hip_texts(made)[0]
    statements = hip_statements(made, text)
    with TemporaryDirectory() as folder:
        numbers = numbers_of_lines(statements)
        found = compile_hip(text, "made", Path(folder), 120, lines=True, numbers=numbers)
    return Compiled(made, found.assembly_text, assign_names(made).kernel, statements)


@pytest.mark.share(24, among="code that is read")
@pytest.mark.parametrize("name", SHIPPED)
def test_everything_of_a_shipped_kernel_stands_between_its_waits(name: str) -> None:
    made = compiled(name)
    found = made.read()
    boundaries = sum(isinstance(each, Wait | Sync) for each in walk(made.kernel.body))
    products = sum(each.opcode.startswith("v_mfma") for each in made.code)

    assert found.boundaries == (boundaries, boundaries)
    assert found.placed > boundaries + products
    assert (found.unplaced, found.moved) == (0, ())


@pytest.mark.share(1280, among="emit: code intervals")
@pytest.mark.parametrize("stem", [f"{family}-{config}" for family, config in shipped_configurations()])
def test_each_shipped_kernel_is_held(stem: str) -> None:
    family, _, config = stem.partition("-")
    for made in kernels_of(dict(families())[family].trace(config)):
        text, report, found = chosen(made)

        assert text != loosened(text) or is_free(made)
        assert (report.scratch_bytes, found.moved) == (0, ())
        assert found.boundaries[0] == found.boundaries[1]


@pytest.mark.share(24, among="code that is read")
def test_the_compiler_moves_products_of_a_text_that_does_not_hold_them() -> None:
    made = compiled("wide attention", loose=True)
    found = made.read()
    notes = list(moved_warnings(made.kernel, found))

    assert {type(each.stmt) for each in found.moved} >= {Mma}
    assert notes[0].code == "E308"
    assert "v_mfma" in " ".join(each.message for each in notes)
    assert {each.primary.span for each in notes if each.primary} <= {
        each.span for each in walk(made.kernel.body) if isinstance(each, Wait | Sync)
    } | {made.kernel.span}


CHECKED = ("v_mfma", "buffer_", "global_", "ds_read", "ds_write")
ENDS = ("s_cbranch", "s_branch", "s_waitcnt", "s_barrier")


def moves(made: Compiled) -> Iterator[tuple[str, str]]:
    """What was changed, and the assembly: each wait and barrier exchanged with the products or accesses around it."""
    rows, code = made.assembly.splitlines(), made.code
    for number, each in enumerate(code):
        if not (each.marked or each.opcode == "s_barrier"):
            continue
        first = each.place - 1
        while each.marked and MARK.match(rows[first]) is None:
            first -= 1
        first -= each.marked  # the comment that begins its assembly
        own = [row for row in rows[first : each.place] if row.strip()]
        for step in (-1, 1):
            other = number + step
            while 0 <= other < len(code) and not code[other].opcode.startswith((*CHECKED, *ENDS)):
                other += step
            if not (0 <= other < len(code)) or not code[other].opcode.startswith(CHECKED):
                continue
            at = code[other].place - (step < 0)
            left = [*rows[:first], *rows[each.place :]]
            at -= 0 if at <= first else each.place - first
            yield f"{each.text} at {each.place} by {step}", "\n".join([*left[:at], *own, *left[at:]])


@pytest.mark.share(1280, among="emit: code intervals")
@pytest.mark.parametrize(
    "name",
    [
        "double buffer",
        "attention",
        pytest.param("ping-pong", marks=pytest.mark.nightly),
    ],
)
def test_each_wait_that_is_moved_in_the_assembly_is_found(name: str) -> None:
    made = compiled(name)
    seeded = list(moves(made))
    survived = [what for what, assembly in seeded if not made.read(assembly).moved]

    assert len(seeded) >= 8
    assert survived == []


@pytest.mark.share(1280, among="emit: code intervals")
@pytest.mark.parametrize("instead", ["", "\ts_waitcnt vmcnt(1) lgkmcnt(1)"], ids=["dropped", "weaker"])
def test_a_wait_that_is_dropped_or_waits_for_less_is_found(instead: str) -> None:
    made = compiled("double buffer")
    rows = made.assembly.splitlines()
    waits = [each for each in made.code if each.marked]
    for each in waits:
        assert made.read("\n".join([*rows[: each.place - 1], instead, *rows[each.place :]])).moved

    assert len(waits) > 5  # the loop's first iteration has code of its own


@pytest.mark.share(24, among="code that is read")
def test_a_build_that_reads_the_code_tells_that_all_is_in_place(tmp_path: Path) -> None:
    made = build(gemm.trace("cdna3"), directory=tmp_path, read_code=True)
    plain = build(gemm.trace("cdna3"), directory=tmp_path / "plain")

    assert made.warnings == ()
    assert made.code_intervals is not None
    assert made.code_intervals.moved == ()
    assert made.source.read_text("utf-8") == plain.source.read_text("utf-8")
    assert made.report == plain.report
    assert "7 of 7 waits and barriers in the code" in " ".join(" ".join(artifact_lines(made)).split())
    assert plain.code_intervals is None


# -- the program's intervals ------------------------------------------------------------------------------------


@kernel(target=gfx942, threads=64)
def waits_in_a_loop(A: Tensor["M 64", bf16], C: Tensor["M 64", bf16]) -> None:
    by = spread((64, 64), threads=64, vector=8)
    held, buffer = registers(bf16, by), shared(bf16, (64, 64))
    for k in loop(4):
        copy(A.tile((64, 64), (k, 0)), held, edge=0)
        with when(eq(k, 0)):
            vmem.wait(0)
        copy(held, buffer)
        lds.wait(0)
        sync()
        copy(buffer, held, via=ds_read_b128)
    copy(held, C.tile((64, 64), (0, 0)), edge=0)


def test_boundaries_reach_a_statement_along_each_path() -> None:
    made = waits_in_a_loop.trace()
    found = intervals(made)
    loaded, stored, read, last = (each for each in walk(made.body) if isinstance(each, Copy))
    first, second = (each for each in walk(made.body) if isinstance(each, Wait))
    (barrier,) = (each for each in walk(made.body) if isinstance(each, Sync))

    assert found[loaded].before == {None, barrier}
    assert found[loaded].after == {first, second}
    assert found[stored].before == {None, barrier, first}
    assert found[stored].after == {second}
    assert found[read].before == {barrier}
    assert found[read].after == {first, second, None}
    assert found[last].before == {None, barrier}
    assert found[barrier].before == {second}
    assert set(products_around(found)) == {first, second, barrier}
