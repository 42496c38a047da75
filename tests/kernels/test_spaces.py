"""The schedules with one field per technique: each is proved and agrees with float64 in the interpreter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from argus.core.diagnostic import ArgusError
from argus.core.ir import Alloc, walk
from argus.core.verdict import Proved, Refuted
from argus.emit.build import build
from argus.emit.cuda.text import cuda_text
from argus.interp.run import run
from argus.interp.search.schedule import DIRECTED, Schedule
from argus.kernels.config_names import name_of
from argus.kernels.gemm import Config, configuration, gemm
from argus.kernels.schedules.cdna3 import Cdna3PingPong
from argus.kernels.schedules.cdna3_staged import Cdna3Staged
from argus.kernels.schedules.hopper import Hopper
from argus.kernels.schedules.staged import Staged
from argus.language import gfx942, kernel, no_pdl
from argus.verifier.kernel import verify

FAST: dict[str, Any] = {"bk": 64, "vector": 8, "swizzle": 128}
RING: dict[str, Any] = {"bk": 64, "swizzle": 128, "tma": True}
WAVES: dict[str, Any] = {"run": 8, "vector": 8, "swizzle": True}
CONFIGS: tuple[Config, ...] = (
    *(Staged(), Staged(vector=2), Staged(vector=4), Staged(vector=8), Staged(swizzle=64), Staged(stages=2)),
    *(Staged(bm=128), Staged(bn=128), Staged(**FAST), Staged(**FAST, group=8), Staged(**FAST, box=True)),
    *(Staged(**FAST, asynchronous=True, stages=stages) for stages in (1, 2, 3, 4)),
    *(Staged(vector=2, asynchronous=True, stages=3), Staged(vector=4, asynchronous=True, swizzle=64)),
    *(Staged(**RING), Staged(**RING, stages=3), Staged(**RING, group=8), Staged(**RING, box=True, stages=2)),
    *(Staged(bk=16, tma=True), Staged(bm=128, **RING, stages=2)),
    *(evolve(Hopper(bn=64, stages=2), **{each: False}) for each in ("flight", "realloc", "persistent", "box", "pdl")),
    *(Hopper(bn=64, stages=2, cluster=pair, persistent=False) for pair in ((2, 1), (1, 2))),
    Hopper(bm=64, bn=64, stages=2, pingpong=True, flight=False, realloc=False, box=False),
    *(Cdna3Staged(), Cdna3Staged(vector=2), Cdna3Staged(vector=4), Cdna3Staged(vector=8), Cdna3Staged(run=8)),
    *(Cdna3Staged(mfma=16), Cdna3Staged(bk=64), Cdna3Staged(waves=(1, 2)), Cdna3Staged(swizzle=True)),
    *(Cdna3Staged(guarded=True), Cdna3Staged(direct=True), Cdna3Staged(group=4), Cdna3Staged(stagger=4)),
    *(Cdna3Staged(unroll=2), Cdna3Staged(unroll=4), Cdna3Staged(priority=True), Cdna3Staged(pinned=True)),
    *(Cdna3Staged(**WAVES, buffers=2), Cdna3Staged(**WAVES, buffers=2, direct=True)),
    *(Cdna3Staged(**WAVES, buffers=2, unroll=each) for each in (2, 4)),
    Cdna3Staged(**WAVES, buffers=2, stagger=4, guarded=True),
    *(Cdna3PingPong(bm=64, bn=128, group=0, mfma=16), Cdna3PingPong(bm=128, bn=128, mfma=32)),
    *(evolve(Cdna3PingPong(bm=64, bn=128), **{each: False}) for each in ("skew", "priority", "guarded")),
)
each_config = pytest.mark.parametrize("config", CONFIGS, ids=name_of)


@pytest.mark.share(96, among="spaces")
@each_config
def test_each_technique_is_proved(config: Config) -> None:
    assert configuration(name_of(config)) == config
    report = verify(gemm.instance(config, name_of(config)), solver="z3")
    assert isinstance(report.verdict, Proved), report.diagnostics


@pytest.mark.share(96, among="spaces")
@each_config
def test_each_technique_agrees_with_float64(config: Config) -> None:
    kernel = gemm.instance(config, name_of(config))
    sizes = {"M": 72, "N": 136, "K": 200}
    random = np.random.default_rng(0)
    a, b = (random.integers(-2, 3, (sizes[rows], sizes["K"])).astype(np.float32) for rows in "MN")
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    for schedule in (DIRECTED[0], Schedule("mixed", seed=1)):
        outcome = run(kernel, sizes, {"A": a, "B": b}, schedule)
        assert outcome.violations == ()
        found = outcome.arrays["C"]
        assert np.array_equal(found.astype(np.float64), exact.astype(found.dtype).astype(np.float64))


@pytest.mark.parametrize("config", [Staged(), Cdna3Staged(), Staged(vector=1, bk=64, stages=2)], ids=name_of)
def test_the_naive_kernel_supports_rows_of_any_length(config: Config) -> None:
    sizes = {"M": 3, "N": 67, "K": 65}
    random = np.random.default_rng(1)
    a, b = (random.integers(-2, 3, (sizes[rows], sizes["K"])).astype(np.float32) for rows in "MN")
    outcome = run(gemm.instance(config, name_of(config)), sizes, {"A": a, "B": b}, DIRECTED[0])
    assert outcome.violations == ()
    assert np.array_equal(outcome.arrays["C"].astype(np.float32), a @ b.T)


@pytest.mark.share(6)
@pytest.mark.parametrize(
    ("config", "degree"),
    [
        *((Staged(**FAST), 1), (Staged(vector=8, swizzle=64, asynchronous=True), 1), (Staged(vector=8), None)),
        *((Cdna3Staged(swizzle=True, run=8), 1), (Cdna3Staged(swizzle=True), 2), (Cdna3Staged(), None)),
    ],
    ids=str,
)
def test_the_remaining_bank_conflicts_of_a_swizzle_are_proved(config: Config, degree: int | None) -> None:
    kernel = gemm.instance(config, name_of(config))
    declared = {s.buffer.banks for s in walk(kernel.body) if isinstance(s, Alloc) and s.buffer.space == "shared"}
    report = verify(kernel, solver="z3")
    assert declared == {degree}
    standing = {finding.invariant: finding.standing for finding in report.findings}
    assert standing["I33"] == ("not applicable" if degree is None else "proved")


# -- points that cannot be built -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "code"),
    [
        (Staged(asynchronous=True), "E108"),
        (Staged(vector=8, swizzle=128), "E218"),
        (Staged(bn=250, vector=8), "E109"),
        (Cdna3Staged(bm=96), "E109"),
        (Cdna3PingPong(bk=32), "E109"),
    ],
    ids=["copies of one element", "rows narrower than the swizzle", "columns", "rows of a wave", "depth of a slice"],
)
def test_invalid_configurations_are_diagnosed(config: Config, code: str) -> None:
    with pytest.raises(ArgusError) as refused:
        gemm.instance(config, name_of(config))
    assert refused.value.diagnostic.code == code


@pytest.mark.parametrize(
    ("config", "code"),
    [
        (Staged(bm=128, bn=256, bk=64, swizzle=128, tma=True, stages=6), "I22"),
        (Staged(bm=128, bn=256, vector=8), "I22"),
        (Cdna3Staged(bm=256, bn=256, bk=64, buffers=2, vector=8), "I22"),
    ],
    ids=["shared memory", "registers", "LDS"],
)
def test_configurations_that_exceed_resources_are_refuted(config: Config, code: str) -> None:
    verdict = verify(gemm.instance(config, name_of(config)), solver="z3").verdict
    assert isinstance(verdict, Refuted)
    assert verdict.counterexample.code == code


WHOLE = (Hopper(), Hopper(cluster=(2, 1)), Hopper(cluster=(1, 2)), Hopper(bm=64, pingpong=True))


@pytest.mark.share(6)
@pytest.mark.parametrize(
    ("full", "away"),
    [
        (full, away)
        for full in WHOLE
        for away in ("flight", "realloc", "persistent", "box", "pdl")
        if not (full.pingpong and away == "persistent")
    ],
    ids=str,
)
def test_a_switched_off_technique_is_absent(full: Hopper, away: str) -> None:
    assert _program(evolve(full, **{away: False})) != _program(full)


def _program(config: Hopper) -> str:
    made = cuda_text(gemm.instance(config, "one"))
    return made.text + str(made.plan.bytes)


def test_a_launch_without_pdl_has_no_grid_wait() -> None:
    early, late = (cuda_text(gemm.instance(Hopper(pdl=each), "one")) for each in (True, False))
    left = [line for line in early.text.splitlines() if "await_launch_before();" not in line]
    left = [line for line in left if "let_next_begin();" not in line]
    assert late.text.splitlines()[:9] == left[:9]
    assert len(late.text.splitlines()) == len(left) == len(early.text.splitlines()) - 2


def test_launches_of_gfx942_never_overlap() -> None:
    @kernel(target=gfx942, threads=64)
    def late() -> None:
        no_pdl()

    with pytest.raises(ArgusError, match="never overlap") as refused:
        late.trace()
    assert refused.value.diagnostic.code == "E106"


# -- what is built ---------------------------------------------------------------------------------------------


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "config", [Cdna3Staged(), Cdna3Staged(**WAVES, bm=128, bn=128, buffers=2, direct=True)], ids=name_of
)
def test_gfx942_is_compiled_without_spills(config: Cdna3Staged, tmp_path: Path) -> None:
    made = build(gemm.instance(config, name_of(config)), directory=tmp_path)
    assert not made.report.spills
    assert made.warnings == ()
    assert ("buffer_load_lds_b32(&" in made.source_text) == config.direct
