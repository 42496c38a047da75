"""Stream-K: proved for any split, correct in the interpreter for a few, built without spills, launched."""

from __future__ import annotations

import json
from math import ceil
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve
from ml_dtypes import bfloat16

from argus.core.diagnostic import ArgusError
from argus.core.dsl.programs import ProgramTemplate
from argus.core.ir import Program
from argus.core.proof.outputs.launch_context import launch_contexts
from argus.core.proof.sync.roles.context import RefusedError
from argus.core.proof.sync.roles.obligations import sequentialise
from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.emit.build_program import build_program
from argus.emit.cuda.ptxas import AssemblerReport
from argus.emit.cuda.text import cuda_text
from argus.interp.programs import run_program
from argus.kernels import streamk
from argus.kernels.config_names import name_of
from argus.kernels.cost_sm_90a import PROCESSORS
from argus.kernels.padded import FAMILIES
from argus.kernels.streamk import CONFIGS, Stream, configuration, gemm_streams
from argus.language import (
    Ring,
    Tensor,
    bf16,
    block_id,
    ceil_div,
    cluster,
    copy,
    f32,
    kernel,
    loop,
    mma,
    role,
    shared,
    sm_90a,
    tag,
    tma,
    warpgroup,
    wgmma,
    zeros,
)
from argus.ops.choice import select_fitted
from argus.runtime.programs import load_program
from argus.solvers.choice import resolve
from argus.solvers.session.session import Session
from argus.verifier.program import verify_program
from tests.kernels.twins import Edit, twin
from tests.runtime.fake_driver import FakeDriver
from tests.runtime.test_cuda import Tensor as Placed

SHARES = [(1, 1), (4, 1), (3, 2), (11, 7), (3, 4), (2, 5)]


LARGER = [
    Stream(64, 24, stages=3, chunks=3, swap_ab=True),
    Stream(128, 48, stages=3, chunks=2, peers=3, swap_ab=True),
    Stream(192, 40, stages=3, chunks=2, run=3, swap_ab=True),
    Stream(256, 32, stages=3, chunks=3, run=2, peers=2, swap_ab=True),
    Stream(256, 96, stages=3, chunks=2),
]
"""With swap-AB, three warpgroups that multiply, and two accumulators for each."""
NO_RUNS = evolve(Budget(), runs=0)
SWAPPED = "stream_swapped_256_144_3_1_2"
FAULTS: list[Edit] = [
    ("own, common = (n, m) if cfg.swap_ab else (m, n)", "own, common = m, n"),
    ("(peers * own + rank, k)", "(peers * own, k)"),
    ("(sums * wg + i, 0)), slot.b)", "(sums * wg, 0)), slot.b)"),
    ("bm // 64 * rank + sums * wg + i, 0", "bm // 64 * rank + wg + i, 0"),
    ("wgmma.wait(pending=sums)", "wgmma.wait(pending=sums + 1)"),
    ("wgmma.wait(pending=0)", "wgmma.wait(pending=1)"),
]
"""The other operand's tile; one CTA's for all; an accumulator that is summed or stored twice; waits for too few."""


def streams(chunks: int, run: int, peers: int = 1) -> Program:
    return instance(Stream(64, 64, stages=3, chunks=chunks, run=run, peers=peers))


def instance(config: Stream) -> Program:
    return gemm_streams.instance(config, "trial")


@pytest.mark.share(140, among="streamk")
@pytest.mark.parametrize("peers", [1, 2])
@pytest.mark.parametrize(("chunks", "run"), SHARES)
def test_any_split_of_a_tile_is_proved(chunks: int, run: int, peers: int) -> None:
    report = verify_program(streams(chunks, run, peers), solver="z3")
    assert isinstance(report.verdict, Proved), [each.diagnostics for each in report.launches]


@pytest.mark.share(140, among="streamk")
@pytest.mark.parametrize("config", LARGER, ids=name_of)
def test_larger_tiles_and_those_of_the_transpose_are_proved_and_right(config: Stream) -> None:
    report = verify_program(instance(config), solver="z3")
    assert isinstance(report.verdict, Proved), [each.diagnostics for each in report.launches]
    check_product(instance(config), (70, 264, 328))


@pytest.mark.share(140, among="streamk")
@pytest.mark.parametrize("edit", FAULTS, ids=str)
def test_faults_of_the_transpose_are_not_proved(edit: Edit) -> None:
    report = verify_program(twin(FAMILIES["gemm_nt"], SWAPPED, streamk, edit), solver="z3", budget=NO_RUNS)
    assert not isinstance(report.verdict, Proved)


@pytest.mark.share(140, among="streamk")
@pytest.mark.parametrize(("chunks", "run", "peers"), [(3, 2, 1), (11, 7, 2), (2, 5, 1), (4, 1, 2)])
@pytest.mark.parametrize("shape", [(70, 136, 200), (5, 8, 8), (130, 64, 704)], ids=str)
def test_the_interpreter_computes_the_product(chunks: int, run: int, peers: int, shape: tuple[int, int, int]) -> None:
    check_product(streams(chunks, run, peers), shape)


def check_product(made: Program, shape: tuple[int, int, int]) -> None:
    """Run it in the interpreter on small integers, whose products are exact."""
    m, n, k = shape
    random = np.random.default_rng(0)
    a, b = (random.integers(-2, 3, (rows, k)).astype(bfloat16) for rows in (m, n))
    given = {"A": a, "B": b, "C": np.zeros((m, n), bfloat16)}

    found = run_program(made, {"M": m, "N": n, "K": k}, given)

    assert found.violations == ()
    wanted = (a.astype(np.float32) @ b.astype(np.float32).T).astype(bfloat16)
    assert np.array_equal(found.arrays["C"], wanted)


def test_names_encode_configurations() -> None:
    config = Stream(64, 128, stages=5, chunks=11, run=7, peers=2)
    assert configuration(name_of(config)) == config
    assert all(configuration(name) == each for name, each in CONFIGS.items())
    assert configuration("stream_of_nothing") is None


@pytest.mark.parametrize(
    "shape", [(512, 512, 16384), (384, 384, 65536), (700, 1288, 24576), (128, 128, 131072)], ids=str
)
def test_stream_k_is_chosen_where_tiles_are_few_and_deep(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    found = select_fitted(m, n, k)
    assert found is not None
    config = configuration(found)
    assert isinstance(config, Stream)
    assert config.run == 1
    assert ceil(m / config.tile[0]) * ceil(n / config.tile[1]) * config.peers * config.chunks <= PROCESSORS


@pytest.mark.parametrize(
    "shape", [(128, 8192, 8192), (512, 7168, 2048), (1024, 1024, 1024), (512, 512, 16380)], ids=str
)
def test_stream_k_is_not_chosen_where_it_is_slower(shape: tuple[int, int, int]) -> None:
    assert select_fitted(*shape) is None


def test_a_program_is_built_and_launched(tmp_path: Path) -> None:
    """Two kernels without spills; grids of the shape's blocks; a workspace with a place for each tile of a run."""
    built = build_program(streams(3, 2), tmp_path)
    for each in built.kernels:
        assert isinstance(each.report, AssemblerReport)
        assert not each.report.spills
    data = json.loads(built.description.read_text(encoding="utf-8"))
    assert [each["given"] for each in data["launches"]] == [
        {"A": "A", "B": "B", "part": "part"},
        {"part": "part", "C": "C"},
    ]
    fake = FakeDriver()
    program = load_program(built.description, fake.driver)
    sizes = {"M": 130, "N": 72, "K": 200}
    prepared = program.prepare(sizes)
    (space,) = prepared.workspaces
    assert (space.name, space.dtype, space.shape) == ("part", "f32", (9, 2, 64, 64))

    tensors = {"A": placed(130, 200), "B": placed(72, 200), "C": placed(130, 72), "part": placed(*space.shape)}
    program.bind(tensors, sizes, stream=5)()
    program.synchronise()

    assert [launch[0] for launch in fake.launches] == ["partial_gemm_", "reduce_tiles_"]
    assert [launch[1:4] for launch in fake.launches] == [(9, 1, 1), (6, 16, 1)]
    assert [launch[8] for launch in fake.launches] == [5, 5]
    with pytest.raises(ArgusError, match="K % 8 == 0"):
        program.prepare({"M": 130, "N": 72, "K": 201})


def test_the_loads_of_partial_sums_overlap() -> None:
    """On an H200 the compiler is asked to unroll the sum; a loop over stages is never unrolled."""
    partial, reduction = (cuda_text(each.kernel).text for each in launch_contexts(streams(132, 1)))
    assert "#pragma unroll 12\n    for (int p_ = 132 * block_0_; p_ < 132 * block_0_ + 132; ++p_) {" in reduction
    assert "#pragma unroll 12" not in partial


def placed(*shape: int) -> Placed:
    strides = tuple(int(np.prod(shape[axis + 1 :])) for axis in range(len(shape)))
    return Placed(shape, strides)


def test_a_damaged_description_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text('{"program": "p"}', encoding="utf-8")
    with pytest.raises(ArgusError) as refused:
        load_program(path, FakeDriver().driver)
    assert refused.value.diagnostic.code == "E405"


def test_a_trivial_condition_is_no_launch_condition(tmp_path: Path) -> None:
    (first, _) = build_program(streams(1, 1), tmp_path).kernels
    assert "true" not in {check.condition for check in first.launch.checks}


def test_an_instance_is_named(tmp_path: Path) -> None:
    assert isinstance(gemm_streams, ProgramTemplate)
    assert build_program(gemm_streams, tmp_path, "stream_128_128_8_1").name == "gemm_streams_stream_128_128_8_1"


@kernel(target=sm_90a, threads=256, cluster=(2, 1))
def unlike(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", f32]) -> None:
    """Clusters have one lap or two, and laps have trips of their own."""
    tag(A, lambda m, k: dict(m=m, k=k))
    tag(B, lambda n, k: dict(n=n, k=k))
    mm = wgmma(bf16, n=16)
    ring = Ring(2, a=shared(bf16, (64, 16), swizzle=32), b=shared(bf16, (16, 16), swizzle=32))
    rank, p = block_id((2, ceil_div(A.shape[0], 128)))
    with role("load", warpgroup(0).elected, registers=24):
        for j in loop(1 + p % 2):
            for k in loop(j + 1):
                with ring.fill() as slot:
                    copy(A.tile((64, 16), (2 * p + rank, k)), slot.a, via=tma, edge=0)
                    tile = B.tile((16, 16), (j, k)).part(0, cluster.rank, 2)
                    copy(tile, slot.b.part(0, cluster.rank, 2), via=tma.multicast((0, 1)), edge=0)
        ring.finish()
    with role("math", warpgroup(1), registers=232):
        for j in loop(1 + p % 2):
            acc = zeros(f32, mm.C)
            for _ in loop(j + 1):
                slot = ring.wait()
                mma(mm, acc, slot.a, slot.b)
                wgmma.wait(pending=0)
                ring.release()
            copy(acc, C.tile((64, 16), (2 * p + rank, j)), edge=0)


def test_uses_that_a_lap_decides_are_alike_only_where_laps_are_counted_alike() -> None:
    refused = sequentialise(unlike.trace(), Session(resolve("z3")))
    assert isinstance(refused, RefusedError)
    assert "numbers of uses that depend on the tile, in a cluster" in refused.reason
    alike = sequentialise(launch_contexts(streams(3, 2, 2))[0].kernel, Session(resolve("z3")))
    assert not isinstance(alike, RefusedError)
