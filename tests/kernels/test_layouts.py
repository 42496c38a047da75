"""GEMM with row-major and column-major operands, single and batched: each schedule is proved."""

from __future__ import annotations

import re

import pytest

from argus.core.verdict import Proved
from argus.emit.cuda.nvrtc import compile_cuda
from argus.emit.cuda.ptxas import parse_report
from argus.emit.cuda.text import cuda_text
from argus.kernels import batched, layouts
from argus.kernels.cost_sm_90a import stores_elements
from argus.kernels.layouts import NN_CONFIGS, NT_CONFIGS
from argus.language import Template
from argus.ops.choice import select_batched, select_transposed
from argus.verifier.kernel import verify

FAMILIES = {
    name: each
    for module in (layouts, batched)
    for name, each in vars(module).items()
    if isinstance(each, Template) and each.name == name
}


def proved(name: str, config: str | None) -> None:
    verdict = verify(FAMILIES[name], config=config, solver="z3").verdict
    assert isinstance(verdict, Proved)
    kind = "f16" if name.endswith("f16") else "bf16"
    assert verdict.results in [(f"each element of `C` is {kind}(sum over k of {ab})",) for ab in ("A * B", "B * A")]


@pytest.mark.share(320, among="layouts")
@pytest.mark.parametrize(
    ("name", "config"),
    [(name, config) for name in ("gemm_nn", "gemm_tn", "gemm_tt", "bmm_nn") for config in FAMILIES[name].instances()],
)
def test_every_schedule_is_proved(name: str, config: str) -> None:
    proved(name, config)


@pytest.mark.share(320, among="layouts")
@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_is_proved(name: str) -> None:
    proved(name, "clustered")
    proved(name, "narrow")


# -- the text ------------------------------------------------------------------------------------------------


def test_an_mn_major_operand_is_loaded_by_boxes_of_one_span_and_multiplied_in_place() -> None:
    text = cuda_text(FAMILIES["gemm_tn"].trace("cooperative")).text

    assert text.count("tma_load_2d(ring_a") == 2
    assert text.count("tma_load_2d(ring_b") == 4
    assert "24576, &B__map1, ring_full_ + 8 * (ring_use_ & 3), 256 * quotient1 + 192, 64 * k_);" in text
    # Columns go on in the next slab, 64 of K on; each instruction takes 16 rows of 128 bytes.
    assert "const u64 a = descriptor_mn<128, 8192>(" in text
    assert "const u64 b = descriptor_mn<128, 8192>(" in text
    assert "(acc_, a + 128 * kk, b + 128 * kk, keep || kk > 0)" in text
    assert re.search(r"wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 [^;]*, p, 1, 1, 1, 1;", text)


@pytest.mark.share(320, among="layouts")
@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("gemm_nn", "clustered_bands"),
        ("gemm_tn", "pingpong"),
        ("gemm_tt_f16", "columns_192"),
        ("bmm_nn", "cooperative"),
    ],
)
def test_compiled_without_spills(name: str, config: str) -> None:
    emitted = cuda_text(FAMILIES[name].trace(config))
    report = parse_report(compile_cuda(emitted.text, emitted.symbol).log)
    assert report.spill_stores == 0
    assert not report.warnings


# -- selection -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "turned", "config"),
    [
        ((4096, 4096, 4096), (False, True), "clustered_bands"),
        ((4096, 4096, 4097), (False, True), "narrow"),
        ((4096, 4096, 4097), (True, True), "clustered_bands"),
        ((4097, 4096, 4096), (True, False), "narrow"),
    ],
)
def test_the_operand_layouts_decide_the_configuration(
    shape: tuple[int, int, int], turned: tuple[bool, bool], config: str
) -> None:
    assert select_transposed(*shape, a_transposed=turned[0], b_transposed=turned[1]) == config


def test_rows_of_c_of_any_length_leave_by_single_elements() -> None:
    chosen = select_transposed(16, 4100, 4096, a_transposed=False, b_transposed=False)
    assert stores_elements(NT_CONFIGS[chosen])


def test_the_products_of_a_batch_fill_the_sms_together() -> None:
    assert select_batched(512, 128, 128, 64) == "rows_64_128"
    assert select_batched(8, 4096, 4096, 4096) == "clustered_bands"
    assert select_batched(4, 100, 100, 100) == "narrow"


def test_mn_major_tiles_are_whole_spans() -> None:
    parts = {"columns_224", "columns_160", "columns_96", "columns_96_fours", "tall_32", "columns_32_fours"}
    parts |= {"tall_96", "tall_96_fours", "tall_160_fours", "tall_224_fours", "rows_64_32", "rows_64_96"}
    assert set(NT_CONFIGS) - set(NN_CONFIGS) == parts
