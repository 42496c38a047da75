"""Broken schedules, compiled here: each is reported at its line, and nothing else is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from attrs import evolve

from argus.core.dsl.kernel import Template
from argus.core.ir import For, Map, Mma, Wait
from argus.emit.artifact import Artifact
from argus.emit.build import build
from argus.emit.cuda.code_warnings import cuda_warnings, is_broken
from argus.emit.cuda.machine_code import MachineCode, Overlap, machine_code
from argus.emit.cuda.ptxas import AssemblerReport
from argus.emit.cuda.sass import Function, Instruction
from argus.report.machine_code import machine_code_json, machine_code_rows
from argus.report.summary import artifact_json, artifact_lines
from argus.verifier.loader import load
from tests.emit import broken_schedules

ROOT = Path(__file__).parents[2]


def built(template: Template, folder: Path) -> tuple[Artifact, MachineCode]:
    made = build(template.trace(), directory=folder, read_code=True)
    assert made.machine_code is not None
    return made, made.machine_code


def source(line: int) -> str:
    return Path(broken_schedules.__file__).read_text(encoding="utf-8").splitlines()[line - 1].strip()


@pytest.mark.share(3)
def test_a_hoisted_wait_is_reported_at_its_line(tmp_path: Path) -> None:
    made, code = built(broken_schedules.exponentials_under_products, tmp_path)
    (overlap,) = code.overlaps
    (warning,) = made.warnings
    frame = warning.primary.span.frame

    assert (overlap.exponentials, overlap.arithmetic) == (32, 32)
    assert overlap.exponentials_ahead < 16
    assert (warning.code, warning.severity) == ("E308", "note")
    assert f"{overlap.exponentials_ahead} of 32 exponentials" in warning.message
    assert frame is not None
    assert source(frame.line) == "wgmma.wait(0)"


def test_what_the_program_computes_ahead_of_its_products_is_no_finding(tmp_path: Path) -> None:
    made, code = built(broken_schedules.exponentials_ahead_of_products, tmp_path)

    assert (made.warnings, code.overlaps) == ((), ())
    (loop,) = code.loops
    assert (loop.products, loop.exponentials, loop.arithmetic) == (1, 32, 64)
    assert loop.loop.frame is not None
    assert source(loop.loop.frame.line) == "for _ in loop(times.shape[0]):"


def test_an_added_wait_is_reported_where_the_accumulator_is_read(tmp_path: Path) -> None:
    made, _ = built(broken_schedules.products_read_in_flight, tmp_path)
    (warning,) = made.warnings

    assert (warning.code, warning.severity) == ("E306", "warning")
    assert warning.primary.span.frame is not None
    assert source(warning.primary.span.frame.line).startswith("copy(scores, Y")


@pytest.mark.share(3)
def test_serialised_products_are_reported_near_the_added_wait(tmp_path: Path) -> None:
    (template,) = load(str(ROOT / "tests/corpus/unknown/loops_of_no_trip.py"))
    made = build(template.trace(), directory=tmp_path, read_code=True)
    (warning,) = (each for each in made.warnings if each.code == "E306")
    text = (ROOT / "tests/corpus/unknown/loops_of_no_trip.py").read_text(encoding="utf-8").splitlines()

    assert "serialises the wgmma instructions of `wedge`" in warning.message
    assert warning.primary.span.frame is not None
    assert text[warning.primary.span.frame.line - 1].strip() == "with when(k > 0):"  # after `wgmma.wait(1)`


def test_a_division_is_reported_as_calls(tmp_path: Path) -> None:
    made, code = built(broken_schedules.quotients, tmp_path)
    (warning,), (call,) = made.warnings, code.calls

    assert (warning.code, warning.severity) == ("E309", "note")  # only unusual operands take the call
    assert (call.routine, call.depth) == ("__cuda_sm20_rcp_rn_f32_slowpath", 1)
    assert call.calls > 0
    assert warning.primary.text == f"{call.calls} calls here, in a loop"
    assert warning.primary.span.frame is not None
    assert source(warning.primary.span.frame.line).startswith("copy(1.0 / load(X")


@pytest.mark.share(2)
def test_spills_are_reported_at_the_lines_that_spill(tmp_path: Path) -> None:
    made, code = built(broken_schedules.crowded, tmp_path)
    assert isinstance(made.report, AssemblerReport)
    (warning,) = made.warnings
    frames = {label.span.frame.line for label in (warning.primary, *warning.secondary) if label.span.frame is not None}

    assert warning.code == "E305"
    assert f"{made.report.spill_stores} bytes of spill stores" in warning.message
    assert "sums[:] = sums * 0.5 + load(X[m].tile((131072,), (0,)), by)" in {source(line) for line in frames}
    assert max(each.depth for each in code.spills) == 1
    assert sum(each.stores for each in code.spills) == made.report.spill_stores
    assert sum(each.loads for each in code.spills) == made.report.spill_loads


# -- the analysis, on instructions written by hand -----------------------------------------------------------

PRODUCT, EXPONENTIAL, WAIT = "WARPGROUP.ARRIVE", "MUFU.EX2", "WARPGROUP.DEPBAR.LE"


def read(*opcodes: str) -> MachineCode:
    """The code of `exponentials_under_products`, in this order of instructions."""
    kernel = broken_schedules.exponentials_under_products.trace()
    loop = next(stmt for stmt in kernel.body if isinstance(stmt, For))
    product, between, wait = (next(stmt for stmt in loop.body if isinstance(stmt, kind)) for kind in (Mma, Map, Wait))
    line = {PRODUCT: 1, EXPONENTIAL: 2, WAIT: 3}
    instructions = tuple(Instruction(opcode, "", line=line[opcode]) for opcode in opcodes)
    return machine_code(Function("made", instructions), (product, between, wait), kernel.body)


@pytest.mark.parametrize(("many", "ahead", "broken"), [(16, 16, False), (16, 8, False), (16, 7, True), (15, 0, False)])
def test_exponentials_ahead_of_a_wait_are_counted(many: int, ahead: int, broken: bool) -> None:
    code = read(PRODUCT, *[EXPONENTIAL] * ahead, WAIT, *[EXPONENTIAL] * (many - ahead))
    (overlap,) = code.overlaps

    assert (overlap.exponentials, overlap.exponentials_ahead) == (many, ahead)
    assert (overlap.arithmetic, overlap.arithmetic_ahead) == (many, ahead)
    assert is_broken(overlap) == broken


def test_arithmetic_counts_where_there_are_no_exponentials() -> None:
    none = Overlap(read(PRODUCT, EXPONENTIAL, WAIT).overlaps[0].wait, 0, 0, 64, 31)

    assert is_broken(none)
    assert not is_broken(evolve(none, arithmetic_ahead=32))


def test_spills_and_serialised_products_without_machine_code() -> None:
    """As before it was read: at the kernel's own line."""
    kernel = broken_schedules.quotients.trace()
    report = AssemblerReport(64, 0, 16, 12, 8, 0, (("C7510", "serialised"),))

    assert [(each.code, each.primary.span) for each in cuda_warnings(kernel, report)] == [
        ("E305", kernel.span),
        ("E306", kernel.span),
    ]


# -- how it is told ------------------------------------------------------------------------------------------


def test_rows_and_json_of_a_built_kernel(tmp_path: Path) -> None:
    made, code = built(broken_schedules.exponentials_under_products, tmp_path)
    rows = dict(machine_code_rows(code))
    (overlap,) = code.overlaps

    assert rows["loop"].startswith("broken_schedules.py:")
    assert "1 wgmma, 64 floating-point (32 exponentials)" in rows["loop"]
    assert f"ahead of the wait {overlap.exponentials_ahead} of 32 exponentials" in rows["overlap"]
    assert any(line.startswith("  overlap") for line in artifact_lines(made))
    told = artifact_json(made)["machine_code"]
    assert told == machine_code_json(code)
    assert f'"wait": ["{broken_schedules.__file__}:' in json.dumps(told)


def test_machine_code_is_read_on_demand_only(tmp_path: Path) -> None:
    kernel = broken_schedules.quotients.trace()

    assert build(kernel, directory=tmp_path).machine_code is None
    assert build(kernel, directory=tmp_path, lines=False, read_code=True).machine_code is None
