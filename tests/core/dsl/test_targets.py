"""Kernels and programs of several targets: `target=`, `warps=`, layouts of all threads and `warp_mma`."""

# ruff: noqa: UP037, ARG001
# Reason: a name in quotes is the name of a size; a kernel has a tensor whether it uses it or not.
# pyright: reportArgumentType=false
# Reason: what the type checker would refuse is what must be refused while tracing, too.

from __future__ import annotations

import pytest
from attrs import frozen

from argus.core.atoms.registry import ATOMS
from argus.core.diagnostic import ArgusError
from argus.core.dsl.targets import ForTarget
from argus.language import (
    Tensor,
    all_to_each,
    bf16,
    block_id,
    ceil_div,
    copy,
    e4m3,
    f16,
    f32,
    gfx942,
    kernel,
    load,
    program,
    replicated,
    role,
    runs,
    sm_90a,
    spread,
    warp_mma,
    warps,
    workspace,
)

BOTH = (gfx942, sm_90a)


@kernel(target=BOTH, warps=2, waits="automatic")
def doubled(X: Tensor["N", f32], Y: Tensor["N", f32]) -> None:
    (i,) = block_id((ceil_div(X.shape[0], 512),))
    x = load(X.tile((512,), (i,)), spread((512,), vector=1), edge=0)
    copy(x + x, Y.tile((512,), (i,)), edge=0)


def test_a_kernel_for_each_target() -> None:
    made = [doubled.trace(name) for name in doubled.instances()]

    assert [(each.name, each.target, each.threads) for each in made] == [
        ("doubled_gfx942", gfx942, 128),
        ("doubled_sm_90a", sm_90a, 64),
    ]
    assert doubled.trace().target is gfx942


def test_the_target_is_known_to_the_function() -> None:
    seen: list[object] = []

    @kernel(target=BOTH, threads=64)
    def shown(X: Tensor["64", f32], *, cfg: ForTarget) -> None:
        seen.append(cfg.target)
        block_id((1,))

    for name in shown.instances():
        shown.trace(name)
    assert seen == [gfx942, sm_90a]


@program(target=BOTH)
def twice(X: Tensor["N", f32], Y: Tensor["N", f32]) -> None:
    H = workspace(f32, X.shape)
    doubled(X, H)
    doubled(H, Y)


def test_launches_of_a_program_are_for_its_target() -> None:
    for name in twice.instances():
        made = twice.trace(name)
        assert [launch.kernel.target.name for launch in made.launches] == [name, name]


def test_a_kernel_without_a_target_takes_that_of_the_program() -> None:
    @kernel(warps=2, waits="automatic")
    def copied(X: Tensor["N", f32], Y: Tensor["N", f32]) -> None:
        (i,) = block_id((ceil_div(X.shape[0], 512),))
        copy(load(X.tile((512,), (i,)), spread((512,), vector=1), edge=0), Y.tile((512,), (i,)), edge=0)

    for target in BOTH:

        @program(target=target)
        def one(X: Tensor["N", f32], Y: Tensor["N", f32]) -> None:
            copied(X, Y)

        made = one.trace()
        assert (made.name, made.target, made.launches[0].kernel.threads) == ("one", target, 2 * target.unit)


def test_a_launch_takes_the_configuration_of_the_programs_target() -> None:
    @frozen
    class Of:
        target: object
        threads: int

    @kernel(configs={"amd": Of(gfx942, 192), "nvidia": Of(sm_90a, 96)})
    def empty(X: Tensor["N", f32]) -> None:
        block_id((X.shape[0],))

    @program(target=sm_90a)
    def one(X: Tensor["N", f32]) -> None:
        empty(X)

    assert one.trace().launches[0].kernel.threads == 96


@pytest.mark.parametrize("targets", [(), (gfx942, gfx942), (gfx942, "sm_90a")], ids=["none", "twice", "a name"])
def test_targets_are_distinct(targets: object) -> None:
    with pytest.raises(ArgusError, match="E107"):

        @kernel(target=targets, threads=64)
        def nowhere(X: Tensor["N", f32]) -> None: ...


def test_targets_or_configurations() -> None:
    with pytest.raises(ArgusError, match="E107"):

        @kernel(target=BOTH, threads=64, configs={"one": None})
        def neither(X: Tensor["N", f32]) -> None: ...


def test_layouts_of_all_threads() -> None:
    found: list[int] = []

    @kernel(target=sm_90a, warps=4)
    def laid_out(X: Tensor["N", f32]) -> None:
        block_id((1,))
        made = (spread((256,), vector=1), runs((256,), vector=1), replicated())
        found.extend(layout.threads.size() for layout in made)
        found.append(load(X.tile((4,), (0,)), all_to_each(), edge=0).layout.threads.size())
        with role("part", warps(0, 1)):
            found.append(spread((256,), vector=1).threads.size())

    laid_out.trace()
    assert found == [128, 128, 128, 128, 32]


def test_layouts_outside_of_a_kernel_name_their_threads() -> None:
    with pytest.raises(ArgusError, match="E105"):
        spread((64,), vector=1)


@pytest.mark.parametrize("target", BOTH, ids=str)
@pytest.mark.parametrize("dtype", [bf16, f16], ids=str)
def test_the_smallest_instruction_of_a_warp(target: object, dtype: object) -> None:
    found: list[object] = []

    @kernel(target=target, warps=1)
    def multiplied(X: Tensor["N", f32]) -> None:
        block_id((1,))
        found.append(warp_mma(dtype).atom)

    multiplied.trace()
    wanted = {"gfx942": "mfma_f32_16x16x16_{}", "sm_90a": "mma_m16n8k16_{}"}[str(target)]
    (atom,) = found
    assert atom in ATOMS
    assert str(atom) == wanted.format(dtype)


def test_a_type_that_no_warp_multiplies() -> None:
    @kernel(target=sm_90a, warps=1)
    def multiplied(X: Tensor["N", f32]) -> None:
        block_id((1,))
        warp_mma(e4m3)

    with pytest.raises(ArgusError) as caught:
        multiplied.trace()
    assert caught.value.diagnostic.code == "E108"
    assert "bf16, f16" in caught.value.diagnostic.help
