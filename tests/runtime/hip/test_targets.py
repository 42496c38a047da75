"""The table of kernels: a choice for a target is a configuration of that target, and a wrong row launches nothing."""

from __future__ import annotations

from typing import Any

import pytest

import argus
from argus.core.diagnostic import ArgusError
from argus.core.target import TARGETS
from argus.kernels import grouped_few, grouped_fp8, grouped_fp8_cdna3
from argus.kernels.attention import FAMILIES as ATTENTION
from argus.kernels.gemm import configuration
from argus.kernels.grouped import grouped_nt
from argus.kernels.rows.norms import layer_norm_bf16, layer_norm_f16, layer_norm_f32
from argus.kernels.streamk import configuration as stream
from argus.kernels.streamk_cdna3 import configuration as stream_cdna3
from argus.language import bf16
from argus.ops import targets
from argus.ops.targets import KERNELS
from tests.runtime.hip.rocm_torch import RocmTorch

OPERATORS: Any = argus
BOTH = pytest.mark.parametrize("target", ["sm_90a", "gfx942"])
SIZES = (1, 8, 72, 1000, 8192)


def test_every_target_of_the_table_is_one() -> None:
    known = {each.name for each in TARGETS}
    assert all(kernels and kernels.keys() <= known for kernels in KERNELS.values())


@BOTH
def test_a_product_is_of_its_target(target: str) -> None:
    choose = KERNELS["matmul"][target].choose
    plain = {"a_transposed": False, "b_transposed": False, "device": ""}
    for m in SIZES:
        for k in (8, 1000, 8192):
            for name in choose("gemm_nt", (m, 1024, k), **plain):
                found = configuration(name) or stream(name) or stream_cdna3(name)
                assert found is not None
                assert found.target.name == target


@BOTH
def test_a_grouped_product_is_of_its_target(target: str) -> None:
    choose = KERNELS["grouped_matmul"][target].choose
    chosen = {
        choose(rows, experts, n, blocks=False) for rows in (*SIZES, 1 << 17) for experts in (1, 64) for n in (8, 4096)
    }
    few = grouped_few.CONFIGS if target == "sm_90a" else {}
    known: dict[str, Any] = {**grouped_nt.configs, **few}
    assert {known[name].target.name for name in chosen} == {target}
    assert len(chosen) > 1
    scaled = {"sm_90a": grouped_fp8.CONFIGS, "gfx942": grouped_fp8_cdna3.CONFIGS}[target]
    found = {choose(1 << shift, 8, n, blocks=True) for shift in range(18) for n in (128, 4096)}
    assert scaled.keys() <= found <= scaled.keys() | few.keys()


@BOTH
@pytest.mark.parametrize("width", [64, 128, 256])
def test_attention_is_of_its_target(target: str, width: int) -> None:
    for causal in (False, True):
        for rows in SIZES:
            name = KERNELS["attention"][target].choose(width, rows, 8192, 16, causal=causal)
            assert ATTENTION[bf16][width].configs[name].target.name == target


@BOTH
@pytest.mark.parametrize(
    ("kind", "family"), [("bf16", layer_norm_bf16), ("f16", layer_norm_f16), ("f32", layer_norm_f32)]
)
def test_rows_are_of_their_target_and_fit_its_kernel(target: str, kind: str, family: Any) -> None:  # noqa: ANN401 reason: a template
    for length in (*SIZES, 7, 513, 40_000):
        config = family.configs[KERNELS["operators along rows"][target].choose(kind, length, length, "thrice", 9)]
        assert config.target.name == target
        assert length % config.vector == 0
        assert not config.held or length <= config.longest


def test_a_row_of_another_targets_kernels_launches_nothing(rocm: RocmTorch, monkeypatch: pytest.MonkeyPatch) -> None:
    of_hopper = KERNELS["operators along rows"]["sm_90a"]
    wrong = {"sm_90a": of_hopper, "gfx942": of_hopper}
    monkeypatch.setattr(targets, "KERNELS", {**KERNELS, "operators along rows": wrong})
    with pytest.raises(ArgusError, match=r"\(gfx942\), the kernel is for sm_90a") as refused:
        OPERATORS.softmax(rocm.normal(3, 64))
    assert refused.value.diagnostic.code == "E407"
    assert not rocm.stub.launches
