"""Predictions of compiled kernels, and the command that prints them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from attrs import evolve

from argus.cli.main import main
from argus.core.cost.dies import DIE_MACHINES
from argus.core.diagnostic import ArgusError
from argus.emit.hip.prelude import loosened
from argus.emit.hip.text import compiled_texts
from argus.kernels.batched import bmm_nt_f16
from argus.kernels.gemm import gemm
from argus.kernels.grouped import grouped_nt
from argus.kernels.schedules.cdna3 import Cdna3PingPong
from argus.kernels.schedules.cdna3_staged import Cdna3Staged
from argus.runtime.cpu.validate import emitted
from argus.runtime.machine.launch import compiled
from argus.runtime.machine.performance import Performance, built, of_code, performance
from argus.verifier.loader import load
from benchmarks.grouped_inputs import integers_of
from benchmarks.grouped_inputs import sizes_of as grouped_sizes

PROVED = Path(__file__).parents[2] / "corpus" / "proved"


def of_config(config: object, machine: str = "MI300X", k: int = 512) -> Performance:
    kernel = gemm.instance(config, "step")
    return of_code(kernel, built(kernel), {"M": 2048, "N": 2048, "K": k}, DIE_MACHINES[machine])


def test_the_command_names_the_limit_and_the_line(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(PROVED / "pingpong.py")
    status = main(["perf", file, "--sizes", "M=1024,N=1024,K=256", "--json"])
    (found,) = json.loads(capsys.readouterr().out)["kernels"]

    assert status == 0
    assert found["machine"] == "MI300X"
    assert found["limit"] in {*found["busy"], *found["path"]}
    assert "pingpong.py:" in found["lines"][0]["place"]
    assert found["resources"]["scratch_bytes"] == 0
    assert sum(found["path"].values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["pingpong.py", "--machine", "MI100"], "E301"),
        (["pingpong.py", "--sizes", "Q=8"], "E701"),
        (["pingpong.py", "--sizes", "K=7"], "E402"),
        (["cluster_shares_b.py"], "E421"),
    ],
)
def test_what_cannot_be_predicted_is_refused(
    arguments: list[str], code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(["perf", str(PROVED / arguments[0]), *arguments[1:]])

    assert status == 3
    assert code in capsys.readouterr().err


@pytest.mark.share(3)
def test_a_kernel_that_finds_its_operands_by_integers_needs_them() -> None:
    """Without the tiles of experts no tile has rows, so that nothing is multiplied."""
    kernel, counts = grouped_nt.trace("interleaved_128"), [300, 0, 212]
    sizes = grouped_sizes(512, 3, 1024, 512, 128)
    sizes = {each.name: sizes[each.name] for each in kernel.sizes}
    made = built(kernel)
    unknown, known = (
        of_code(kernel, made, sizes, DIE_MACHINES["MI300X"], integers).predicted
        for integers in (None, integers_of(counts, 128))
    )

    assert unknown.flops == 0
    assert known.flops == 2 * sizes["T"] * 128 * 1024 * 512  # tiles are alike, those without rows too
    assert known.microseconds > unknown.microseconds


@pytest.mark.nightly
def test_worse_schedules_of_a_product_are_predicted_to_be_slower() -> None:
    best = Cdna3Staged(bm=128, bn=128, waves=(2, 2), mfma=16, run=8, vector=8, swizzle=True, guarded=True, buffers=2)
    predicted = of_config(best).predicted.microseconds

    for worse in ({"swizzle": False}, {"buffers": 1}, {"vector": 2}):
        assert of_config(evolve(best, **worse)).predicted.microseconds > predicted, worse


@pytest.mark.nightly
def test_loads_that_the_compiler_moves_behind_the_products_are_noticed() -> None:
    tile = Cdna3Staged(256, 256, 32, (2, 4), mfma=16, run=8, vector=8, swizzle=True, guarded=True, buffers=2, unroll=2)
    moved, pinned = (of_config(evolve(tile, pinned=each), k=4096) for each in (False, True))

    assert moved.predicted.path["wait for memory"] > 2 * pinned.predicted.path["wait for memory"]
    assert moved.predicted.microseconds > 1.05 * pinned.predicted.microseconds


@pytest.mark.nightly
def test_the_ping_pong_is_faster_than_its_parts() -> None:
    plain = Cdna3PingPong(skew=False, priority=False)
    whole, in_step, wide = (
        of_config(each, "MI355X", 4096) for each in (Cdna3PingPong(), plain, Cdna3PingPong(mfma=32))
    )

    assert whole.predicted.microseconds < in_step.predicted.microseconds
    assert whole.predicted.microseconds < wide.predicted.microseconds
    assert whole.descriptor.scratch_bytes == 0


@pytest.mark.nightly
def test_conflicts_are_charged_to_the_line_that_reads() -> None:
    found = of_config(Cdna3Staged(bm=64, bn=64, bk=64, mfma=16, run=8, vector=8))

    assert found.predicted.limit == "shared"
    assert "ds_read" in found.lines[0].instruction
    assert "cdna3_staged.py" in found.lines[0].place


@pytest.mark.nightly
def test_addresses_that_spill_are_those_that_are_loaded_again() -> None:
    """Two registers spill ahead of the loop: the prediction is that of the text without."""
    kernel = bmm_nt_f16.trace("interleaved")
    held = next(iter(compiled_texts(kernel)))
    sizes, info = {"Z": 1, "M": 2048, "N": 2048, "K": 2048}, emitted(kernel).info
    spilled, kept = (
        of_code(kernel, compiled(kernel, text, info), sizes, DIE_MACHINES["MI300X"]) for text in (loosened(held), held)
    )

    assert spilled.descriptor.scratch_bytes > kept.descriptor.scratch_bytes == 0
    assert spilled.predicted.microseconds == pytest.approx(kept.predicted.microseconds, rel=0.05)


def test_kernels_of_another_target_are_refused() -> None:
    with pytest.raises(ArgusError) as caught:
        performance(load(str(PROVED / "cluster_shares_b.py"))[0].trace(), {})

    assert caught.value.diagnostic.code == "E421"
