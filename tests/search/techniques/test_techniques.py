from collections.abc import Iterator

import pytest

from argus.core.verdict import Proved
from argus.kernels.fp8 import gemm_fp8
from argus.kernels.gemm import CONFIGS
from argus.kernels.schedules.cdna3 import Cdna3, Cdna3PingPong
from argus.kernels.schedules.cdna3_staged import Cdna3Staged
from argus.kernels.schedules.hopper import Hopper
from argus.kernels.schedules.skinny import Skinny
from argus.kernels.schedules.split import Split
from argus.kernels.schedules.staged import Staged
from argus.search.designs.designs import derivation, design, kernel_of, name, shipped_designs
from argus.search.evaluation.numerics import disagreement
from argus.search.problems.problem import problem_of
from argus.search.techniques import TRANSFORMATIONS
from argus.search.transformation import Design, Transformation, combine, increase_field, set_field
from argus.verifier.api import verify

FIRST: tuple[Design, ...] = (Staged(), Cdna3Staged(), CONFIGS["narrow"])


def before_shipped() -> Iterator[Design]:
    for target in ("sm_90a", "gfx942"):
        for expert in shipped_designs(target):
            yield from (each for _, each in derivation(expert))


@pytest.mark.share(4)
@pytest.mark.parametrize("technique", TRANSFORMATIONS)
def test_applied_techniques_can_be_undone(technique: str) -> None:
    transformation = TRANSFORMATIONS[technique]
    for each in set(before_shipped()):
        for made in transformation.apply(each):
            assert made != each
            assert transformation.undo(made) is not None, (name(each), name(made))


@pytest.mark.share(4)
@pytest.mark.parametrize("technique", TRANSFORMATIONS)
def test_undoing_ends(technique: str) -> None:
    for each in set(before_shipped()):
        seen: list[Design] = [each]
        while (without := TRANSFORMATIONS[technique].undo(seen[-1])) is not None:
            assert without not in seen
            seen.append(without)


UNDERIVED = {
    *("rows_64_32", "narrow_32", "single_16", "single_32", "split_32_4", "tall_32", "columns_32_fours"),
    *("clustered_any", "columns_128_any", "rows_64_128_any", "rows_64_64_any"),
}
"""No technique makes tiles of fewer than 64 columns, or an epilogue of single elements."""


@pytest.mark.share(4)
@pytest.mark.parametrize("expert", [name for name in CONFIGS if name not in UNDERIVED])
def test_every_shipped_design_has_a_derivation(expert: str) -> None:
    walked = derivation(CONFIGS[expert])

    assert walked[0] in {("", each) for each in FIRST}
    assert walked[-1][1] == CONFIGS[expert]


def test_the_history_of_an_expert_takes_each_technique_once() -> None:
    names = [technique for technique, _ in derivation(design("clustered_bands"))][1:]

    assert names[:3] == ["vector-loads", "bank-conflict-mitigation", "larger-bn"]
    assert names[-3:] == ["async-wgmma", "grouped-order", "tma-multicast"]
    assert len(names) == len(set(names)) == 15


@pytest.mark.parametrize(
    ("technique", "before", "after"),
    [
        ("software-pipelining", Staged(), Staged(stages=3)),
        ("software-pipelining", Cdna3Staged(), Cdna3Staged(buffers=2)),
        ("vector-loads", Staged(), Staged(vector=8)),
        ("async-copy", Staged(vector=8), Staged(vector=8, asynchronous=True)),
        ("tma-loads", Staged(vector=8, asynchronous=True), Staged(tma=True)),
        ("bank-conflict-mitigation", Staged(bk=64), Staged(bk=64, swizzle=128)),
        ("larger-bk", Staged(swizzle=64), Staged(bk=64, swizzle=128)),
        ("larger-bk", Hopper(stages=4), Hopper(bk=128, stages=2)),
        ("warp-specialisation", Staged(128, 128, 64, 4, tma=True, swizzle=128, box=True), None),
        ("persistent-kernel", Hopper(persistent=False), Hopper()),
        ("tma-multicast", Hopper(group=8), Hopper(group=8, cluster=(2, 1))),
        ("full-tile-epilogue", Hopper(stages=3), Hopper(stages=3, whole=True)),
        ("ping-pong", Hopper(), Hopper(bm=64, pingpong=True)),
        ("hilbert-order", Hopper(), Hopper(curve=16)),
        ("split-k", Hopper(bn=128, stages=6), Split(stages=5, splits=4)),
        ("swap-ab", Hopper(bn=64, stages=8), Skinny(bm=16, bk=256, stages=5)),
        ("stagger-k", Cdna3Staged(), Cdna3Staged(stagger=8)),
        ("agprs", Cdna3Staged(bm=256, bn=256), Cdna3Staged(bm=256, bn=256, agprs=True)),
        ("agprs", CONFIGS["cdna3"], Cdna3(agprs=True)),
        ("agprs", CONFIGS["cdna3_pingpong"], Cdna3PingPong(agprs=True)),
        ("8-wave-ping-pong", Cdna3PingPong(skew=False), CONFIGS["cdna3_pingpong"]),
        ("interleaved-fragment-loads", None, Cdna3PingPong(skew=False)),
        ("interleaved-fragment-loads", None, CONFIGS["interleaved"]),
    ],
)
def test_a_technique_leads_there_and_back(technique: str, before: Design | None, after: Design | None) -> None:
    transformation = TRANSFORMATIONS[technique]
    start = transformation.undo(after) if before is None and after is not None else before
    assert start is not None
    ends = (after,) if after is not None else transformation.apply(start)

    assert ends
    assert set(ends) <= set(transformation.apply(start))
    assert all(transformation.undo(end) == start for end in ends)


@pytest.mark.parametrize(
    ("technique", "without"),
    [
        ("full-tile-epilogue", Hopper(bn=128)),  # two boxes are all of it
        ("hilbert-order", Hopper(group=8)),
        ("tma-multicast", Hopper(bm=64, pingpong=True)),
        ("vector-loads", Staged(tma=True)),
        ("hardware-bounds-check", Cdna3Staged(direct=True)),
        ("bank-conflict-mitigation", Staged(swizzle=64)),
        ("software-pipelining", CONFIGS["narrow"]),
    ],
)
def test_a_technique_does_not_apply_where_it_means_nothing(technique: str, without: Design) -> None:
    assert TRANSFORMATIONS[technique].apply(without) == ()


def test_designs_that_do_not_fit_are_made_to_or_left_out() -> None:
    wider = TRANSFORMATIONS["larger-bn"].apply(Hopper(bn=128, stages=6))

    assert Hopper(bn=256, stages=4) in wider
    assert TRANSFORMATIONS["larger-bn"].apply(Staged(bm=128, bn=192)) == ()


def test_techniques_of_several_kinds_are_one() -> None:
    both = combine(set_field(Staged, "vector", 8), increase_field(Hopper, "bn", 64, 128), Transformation())

    assert both.apply(Staged()) == (Staged(vector=8),)
    assert both.undo(Hopper(bn=128)) == Hopper(bn=64)
    assert both.undo(Staged()) is None
    assert not both.rewrites


@pytest.mark.share(16)
@pytest.mark.parametrize(
    ("technique", "kernel"),
    [
        ("loop-unrolling", "cdna3"),
        ("loop-unrolling", "cdna3_pingpong"),
        ("sched-barriers", "cdna3"),
        ("wave-priority", "cdna3"),
        ("load-hoisting", "split_4"),
    ],
)
def test_rewritten_kernels_are_proved_and_compute_the_same(technique: str, kernel: str) -> None:
    before = kernel_of(design(kernel))
    problem = problem_of("gemm:64x64x64", before.target.name)
    found = TRANSFORMATIONS[technique].rewrite(before)

    assert found
    for made in found:
        assert isinstance(verify(made).verdict, Proved)
        assert disagreement(problem, made) == ""


def test_a_rewriting_is_done_once() -> None:
    for technique in ("loop-unrolling", "sched-barriers", "wave-priority", "load-hoisting"):
        rewrite = TRANSFORMATIONS[technique].rewrite
        for kernel in map(kernel_of, (design("cdna3"), design("split_4"))):
            assert all(rewrite(made) == () for made in rewrite(kernel))


def test_promoted_sums_are_proved() -> None:
    (made,) = TRANSFORMATIONS["fp8-promotion"].rewrite(gemm_fp8.trace("columns_128"))

    assert isinstance(verify(made).verdict, Proved)
    assert TRANSFORMATIONS["fp8-promotion"].rewrite(made) == ()
    assert TRANSFORMATIONS["fp8-promotion"].rewrite(kernel_of(design("cooperative"))) == ()
