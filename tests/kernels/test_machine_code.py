"""What the compiler made of the shipped kernels for sm_90a: no spills, no serialised products, and known overlaps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from argus.core.dsl.kernel import Template
from argus.core.ir import Kernel
from argus.emit.build import build
from argus.emit.cuda.code_warnings import is_broken
from argus.emit.cuda.machine_code import MachineCode
from argus.kernels import attention, fused, gated
from argus.kernels.fp8 import gemm_fp8
from argus.kernels.fp8_blocks import gemm_fp8_blocks
from argus.kernels.gemm import gemm
from argus.language import sm_90a

ATTENTION = {64: attention.attention_64, 128: attention.attention_128, 256: attention.attention_256}
HOISTED = {
    *("attention_64_full", "attention_64_causal", "attention_64_causal_few", "attention_64_causal_masked_rows"),
    *("attention_128_full", "attention_128_causal", "attention_128_causal_few"),
    *("attention_128_causal_section", "attention_256_causal", "attention_256_causal_few"),
}
"""Kernels in which a wait precedes most of the exponentials that the program has ahead of it. None may be added."""
LEAST_AHEAD = {"attention_128_full": 22, "attention_256_full": 22}
"""Exponentials ahead of the wait in the configurations that put a barrier in front of it (`together`): 27 each, but any
change to a kernel moves a few.
"""


def products(template: Template) -> Iterator[tuple[Template, str]]:
    return ((template, name) for name in template.instances() if name and template.configs[name].target == sm_90a)


def read(template: Template, config: str, folder: Path) -> tuple[Kernel, MachineCode, set[str]]:
    kernel = template.trace(config)
    made = build(kernel, directory=folder, read_code=True)
    assert made.machine_code is not None
    return kernel, made.machine_code, {each.code for each in made.warnings}


@pytest.mark.share(192, among="machine code")
@pytest.mark.parametrize(
    ("width", "config"), [(width, config) for width, configs in attention.CONFIGS.items() for config in configs]
)
def test_attention(width: int, config: str, tmp_path: Path) -> None:
    kernel, code, found = read(ATTENTION[width], config, tmp_path)
    broken = {kernel.name} if any(map(is_broken, code.overlaps)) else set[str]()
    loops = 1 + (attention.CONFIGS[width][config].causal and attention.CONFIGS[width][config].skip_mask)

    assert (code.spills, code.added_waits, code.indirect) == ((), (), False)
    assert len(code.overlaps) == loops  # with the mask, and without
    assert broken == HOISTED & {kernel.name}
    assert all(each.exponentials_ahead >= LEAST_AHEAD.get(kernel.name, 0) for each in code.overlaps)
    assert code.calls == ()
    assert found == ({"E308"} if broken else set())


@pytest.mark.share(192, among="machine code")
@pytest.mark.parametrize(
    ("template", "config"),
    [
        *products(gemm),
        *products(gemm_fp8),
        *products(gemm_fp8_blocks),
        *products(fused.gemm_bias_gelu),
        *products(gated.gemm_gated_silu),
    ],
    ids=lambda each: each if isinstance(each, str) else each.name,
)
def test_products(template: Template, config: str, tmp_path: Path) -> None:
    _, code, _ = read(template, config, tmp_path)

    assert (code.spills, code.added_waits, code.indirect) == ((), (), False)
    assert not any(map(is_broken, code.overlaps))
    assert all(each.depth <= 1 and each.routine.endswith("slowpath") for each in code.calls)
    if config != "narrow":  # which multiplies with `mma.sync`
        assert any(each.loop.frame is not None and each.products for each in code.loops)
