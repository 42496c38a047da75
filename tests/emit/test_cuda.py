"""Emission for sm_90a: the text, the shared-memory plan, the compiler's report, and the launch description."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from argus.core.diagnostic import ArgusError, InternalError
from argus.core.ir import Assert, Kernel, Roles, Stmt, Sync, Tag, bodies, walk, with_bodies
from argus.core.ir.surgery import with_stmts
from argus.core.memory.placement import alignment
from argus.emit.build import build
from argus.emit.cuda.code_warnings import cuda_warnings
from argus.emit.cuda.nvrtc import compile_cuda
from argus.emit.cuda.ptxas import AssemblerReport, parse_report
from argus.emit.cuda.text import cuda_text
from argus.kernels.gemm import gemm
from argus.kernels.schedules.skinny import Skinny
from argus.kernels.schedules.split import Split
from argus.runtime.expressions import value_of
from argus.testing.mutation import mutated, named
from argus.verifier.loader import load


@pytest.fixture(scope="module")
def cooperative() -> Kernel:
    return gemm.trace("cooperative")


def erased(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    kept = [stmt for stmt in body if not isinstance(stmt, Tag | Assert)]
    return tuple(with_bodies(stmt, tuple(erased(part) for part in bodies(stmt))) for stmt in kept)


def test_tags_and_assertions_leave_no_trace(cooperative: Kernel) -> None:
    (roles,) = erased((cooperative.roles,) if cooperative.roles is not None else ())
    assert isinstance(roles, Roles)
    bare = evolve(
        cooperative,
        prologue=erased(cooperative.prologue),
        roles=roles,
        epilogue=erased(cooperative.epilogue),
    )

    assert cuda_text(bare).text == cuda_text(cooperative).text


def test_shared_memory_is_laid_out_within_the_machines(cooperative: Kernel) -> None:
    plan = cuda_text(cooperative).plan
    tensors = {buffer: offset for buffer, offset in plan.offsets.items() if buffer.space == "shared"}

    assert plan.bytes <= cooperative.target.shared_bytes
    assert all(offset % alignment(buffer) == 0 for buffer, offset in tensors.items())
    assert {alignment(buffer) for buffer in tensors} == {1024}
    assert all(plan.offsets[buffer] % 8 == 0 for buffer in plan.offsets)
    ends = sorted(plan.offsets.values())
    assert len(set(ends)) == len(ends)


def test_each_role_sets_its_registers_and_runs_in_its_warps(cooperative: Kernel) -> None:
    text = cuda_text(cooperative).text

    assert "if (thread_ >= 0 && thread_ < 128) {  // load\n" in text
    assert "registers_down<40>();" in text
    assert "} else if (thread_ >= 128 && thread_ < 384) {  // math\n" in text
    assert "registers_up<232>();" in text
    assert text.index("registers_down<40>();") < text.index(
        "if (thread_ == 0) {\n", text.index("registers_down<40>();")
    )


def test_the_warpgroup_index_is_warp_uniform(cooperative: Kernel) -> None:
    assert "const int wg_ = same_in_warp((thread_ - 128) / 128);" in cuda_text(cooperative).text


@pytest.mark.share(12)
@pytest.mark.parametrize("config", [name for name, each in gemm.configs.items() if each.target.name == "sm_90a"])
def test_no_read_before_the_previous_launch_ends(config: str) -> None:
    """All threads wait, in no branch, after the barriers are made and before any role begins."""
    lines = cuda_text(gemm.trace(config)).text.partition("__global__")[2].splitlines()
    waits = [place for place, line in enumerate(lines) if "await_launch_before" in line]
    moves = [place for place, line in enumerate(lines) if re.search(r"\b(tma_|bulk_|cp_async|load_b|role)", line)]

    assert [lines[place] for place in waits] == ["    await_launch_before();"]
    assert lines[waits[0] + 1] == "    let_next_begin();"
    assert moves
    assert min(moves) > waits[0]


def test_bytes_are_announced_before_the_boxes_that_bring_them(cooperative: Kernel) -> None:
    lines = [line.strip() for line in cuda_text(cooperative).text.splitlines()]
    announced = next(place for place, line in enumerate(lines) if line.startswith("arrive_expect("))
    loads = [place for place, line in enumerate(lines) if line.startswith("tma_load_2d(")]

    assert lines[announced].endswith(f"{(128 + 256) * 64 * 2});")
    assert len(loads) == 2
    assert announced < min(loads)


@pytest.mark.share(6, among="emit: cuda")
@pytest.mark.parametrize("config", ["cooperative", "super_tiled", "small"])
def test_a_kernel_compiles_without_a_gpu(config: str, tmp_path: Path) -> None:
    made = build(gemm.trace(config), None, tmp_path)

    assert isinstance(made.report, AssemblerReport)
    assert not made.report.spills
    assert not made.report.serialised
    assert made.report.registers == 168
    assert made.warnings == ()
    assert {path.suffix for path in tmp_path.iterdir()} == {".cu", ".cubin", ".json"}
    assert made.code.read_bytes()[:4] == b"\x7fELF"


def test_a_launch_knows_its_maps_and_conditions(cooperative: Kernel, tmp_path: Path) -> None:
    made = build(cooperative, "sm_90a", tmp_path)
    launch = json.loads(made.description.read_text())["launch"]

    assert [(each["tensor"], each["box"], each["swizzle"]) for each in launch["maps"]] == [
        ("A", [128, 64], 128),
        ("B", [256, 64], 128),
        ("C", [64, 64], 128),
    ]
    assert [argument["name"] for argument in launch["arguments"]] == ["M", "K", "N"]
    conditions = [check["condition"] for check in launch["checks"]]
    sizes = {"M": 5, "N": 16, "K": 8}
    assert all(value_of(condition, sizes) for condition in conditions)
    assert not all(value_of(condition, {**sizes, "K": 12}) for condition in conditions)
    assert [value_of(extent, sizes) for extent in launch["grid"]] == [132]
    assert launch["shared_bytes"] == cuda_text(cooperative).plan.bytes


def test_an_arrival_at_the_blocks_barrier_does_not_wait() -> None:
    (exported,) = load("tests/corpus/proved/real_hecbench_253.py")
    kernel = exported.trace()
    whole = cuda_text(kernel).text
    (first, _) = mutated(kernel, named(["meeting_without_waiting"]))
    text = cuda_text(first.kernel).text
    assert text.count("  __syncthreads();") == whole.count("  __syncthreads();") - 1 == 1
    assert text.count(f"  meet_arrive(0, {kernel.threads});") == 1


@pytest.mark.parametrize("change", [{"how": "wait"}, {"threads": 64}])
def test_a_part_of_the_blocks_barrier_is_refused(change: dict[str, Any]) -> None:
    (exported,) = load("tests/corpus/proved/real_hecbench_253.py")
    kernel = exported.trace()
    sync = next(stmt for stmt in walk(kernel.body) if isinstance(stmt, Sync))
    with pytest.raises(ArgusError, match=r"E501.*part of the block's barrier"):
        cuda_text(with_stmts(kernel, sync, (evolve(sync, **change),)))


def test_another_target_is_refused() -> None:
    with pytest.raises(ArgusError) as refused:
        cuda_text(gemm.trace("cdna3"))

    assert refused.value.diagnostic.code == "E301"


# -- the assembler's report ----------------------------------------------------------------------------------

LOG = """\
ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to something in 'k'
ptxas info    : Compiling entry function 'k' for 'sm_90a'
ptxas info    : Function properties for k
ptxas         .     16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 168 registers, used 3 barriers, 1024 bytes smem
"""


def test_a_report_is_read(cooperative: Kernel) -> None:
    report = parse_report(LOG)

    assert (report.registers, report.barriers, report.shared) == (168, 3, 1024)
    assert (report.stack, report.spill_stores, report.spill_loads) == (16, 12, 8)
    assert report.spills
    assert report.serialised
    assert [warning.code for warning in cuda_warnings(cooperative, report)] == ["E305", "E306"]


def test_a_report_without_a_figure_is_a_fault_of_ours() -> None:
    with pytest.raises(InternalError):
        parse_report("ptxas info : Compile time = 1 ms")


@pytest.mark.share(6, among="emit: cuda")
@pytest.mark.parametrize(
    "config", [Skinny(bm=152, bk=64, stages=6, bn=128), Split(bm=64, bn=80, stages=10, swap_ab=True)]
)
def test_values_of_a_predicated_store_are_computed_by_all_threads(config: Skinny | Split) -> None:
    """Else the assembler lets no product overlap another."""
    emitted = cuda_text(gemm.instance(config, "small"))
    report = parse_report(compile_cuda(emitted.text, emitted.symbol).log)

    assert re.search(
        r"hold\(value_\d+_\);\n\s*\{\n(\s*const int at\d = [^\n]*\n)+\s*if \([^\n]*store_b16", emitted.text
    )
    assert report.spill_stores == 0
    assert not report.warnings
