"""Schedules of `argus.matmul`: chosen by shape or by a stored search result, launched only if supported and proved."""

from __future__ import annotations

import numpy as np
import pytest

import argus
from argus.core.diagnostic import ArgusError
from argus.kernels.gemm import gemm
from argus.kernels.schedules.hopper import Hopper
from argus.kernels.schedules.narrow import Narrow
from argus.kernels.schedules.skinny import Skinny
from argus.kernels.schedules.split import Split
from argus.ops.matmul import CONFIGS, Config, choose, kernel
from argus.runtime import launch_gate, tuning_db
from argus.runtime.launch_gate import Unproved
from argus.runtime.tuning_db import Key, TunedConfig
from tests.ops.fake_torch import CUDA, Multiplying, expected_product, gpu, matmul_module, matrix, verified_as


@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        ((1, 1, 1), Narrow),
        ((4096, 4096, 4097), Narrow),
        ((16, 4100, 4096), Split),
        ((65, 4096, 4096), Split),
        ((129, 11008, 4096), Skinny),
        ((1024, 1024, 1024), Hopper),
        ((512, 7168, 2048), Hopper),
        ((4096, 14336, 4096), Hopper),
        ((8192, 8192, 8192), Hopper),
    ],
)
def test_the_shape_determines_the_schedule(shape: tuple[int, int, int], kind: type) -> None:
    assert isinstance(gemm.configs[choose(*shape)], kind)


@pytest.mark.share(4)
@pytest.mark.parametrize("config", CONFIGS)
def test_every_schedule_is_a_shipped_kernel_of_the_same_claim(config: Config) -> None:
    traced = kernel(config)

    assert traced.target.name == "sm_90a"
    assert [buffer.name for buffer in traced.parameters] == ["A", "B", "C"]


@pytest.mark.usefixtures("fake")
def test_a_program_without_a_proof_is_not_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch_gate, "verify_program_cached", verified_as("unknown"))
    with pytest.raises(ArgusError, match="is unknown and therefore not launched"):
        argus.matmul(matrix(96, 200), matrix(72, 200, 1).mT, config="stream_128_128_8_1")


@pytest.mark.share(3)
def test_a_schedule_that_does_not_support_the_shape_is_refused(fake: Multiplying) -> None:
    with pytest.raises(ArgusError) as refused:
        argus.matmul(matrix(8, 7), matrix(7, 8), config="cooperative")

    assert refused.value.diagnostic.code == "E405"
    assert "K % 8 == 0" in refused.value.diagnostic.message
    assert fake.launches == []


def test_another_gpu_is_refused(fake: Multiplying, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CUDA, "get_device_properties", gpu(8))

    with pytest.raises(ArgusError) as refused:
        argus.matmul(matrix(3, 5), matrix(5, 7))
    assert refused.value.diagnostic.code == "E407"
    assert fake.launches == []


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("verdict", "unproved", "launched"),
    [
        ("proved", "refuse", True),
        ("unknown", "refuse", False),
        ("unverified", "refuse", False),
        ("unknown", "allow", True),
        ("refuted", "allow", False),
    ],
)
def test_unproved_kernels_are_launched_only_on_request(
    fake: Multiplying,
    monkeypatch: pytest.MonkeyPatch,
    verdict: str,
    unproved: Unproved,
    launched: bool,
) -> None:
    monkeypatch.setattr(launch_gate, "verify_cached", verified_as(verdict))
    a, b = matrix(3, 5), matrix(5, 7)

    if launched:
        argus.matmul(a, b, unproved=unproved)
    else:
        with pytest.raises(ArgusError) as refused:
            argus.matmul(a, b, unproved=unproved)
        assert refused.value.diagnostic.code == "E413"
        assert verdict in refused.value.diagnostic.message
    assert bool(fake.launches) == launched


def store_choice(config: str, shape: tuple[int, int, int]) -> None:
    tuning_db.store_choices("Imagined GPU", {Key(shape): TunedConfig(config, {"sustained": 1.0}, 2)})
    matmul_module.clear_cache()


def test_a_stored_choice_is_launched(fake: Multiplying) -> None:
    store_choice("hopper_bn128_stages3", (64, 16, 8))

    found = argus.matmul(matrix(64, 8), matrix(16, 8, 1).mT)

    assert np.array_equal(found.array, expected_product(matrix(64, 8), matrix(16, 8, 1).mT))
    assert fake.symbols == ["gemm_hopper_bn128_stages3_"]


@pytest.mark.parametrize("config", ["nothing", "hopper_bn250", "cdna3"])
def test_a_stored_choice_that_does_not_build_falls_back_to_the_model(fake: Multiplying, config: str) -> None:
    store_choice(config, (64, 16, 8))

    argus.matmul(matrix(64, 8), matrix(16, 8, 1).mT)

    assert fake.symbols == [f"gemm_{choose(64, 16, 8)}_"]


@pytest.mark.share(3)
def test_a_stored_choice_that_does_not_support_the_shape_falls_back_to_the_model(fake: Multiplying) -> None:
    store_choice("cooperative", (8, 8, 7))

    argus.matmul(matrix(8, 7), matrix(8, 7).mT)

    assert fake.symbols[-1] == "gemm_narrow_32_"
    assert len(fake.launches) == 1


def test_a_fault_on_the_gpu_is_not_tried_again(fake: Multiplying) -> None:
    store_choice("hopper_bn128_stages3", (64, 16, 8))
    fake.fails["cuLaunchKernelEx"] = "ILLEGAL_ADDRESS"

    with pytest.raises(ArgusError) as failed:
        argus.matmul(matrix(64, 8), matrix(16, 8, 1).mT)
    assert failed.value.diagnostic.code == "E409"
    assert fake.calls.count("cuLaunchKernelEx") == 1
