"""Products and sums are contracted to fused multiply-adds only where the program says `fma`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from argus.core.ir import Kernel
from argus.core.target import Target
from argus.emit.build import build
from argus.emit.cuda import nvrtc
from argus.emit.cuda.text import cuda_text
from argus.emit.hip import toolchain
from argus.language import Tensor, copy, f32, fma, gfx942, kernel, load, sm_90a, spread, vmem


def made(target: Target, *, fused: bool) -> Kernel:
    def body(A: Tensor["256 4", f32], B: Tensor["256 4", f32], Y: Tensor["256 4", f32]) -> None:
        tv = spread((256, 4), threads=256, vector=4)
        a, b = load(A, tv), load(B, tv)
        if target == gfx942:
            vmem.wait(0)
        copy(fma(a, b, a) if fused else a * b + a, Y)

    return kernel(target=target, threads=256)(body).trace()


@pytest.mark.skipif(not nvrtc.compiler_present(), reason="compiles with NVRTC")
@pytest.mark.parametrize("fused", [False, True])
def test_on_sm_90a(fused: bool) -> None:
    assert ("fma.rn.f32" in nvrtc.compile_ptx(cuda_text(made(sm_90a, fused=fused)).text, "made")) == fused


@pytest.mark.skipif(not nvrtc.compiler_present(), reason="compiles with NVRTC")
def test_the_compiler_would_contract_if_it_might(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        nvrtc, "_PTX_OPTIONS", (b"--gpu-architecture=compute_90a", b"-std=c++17", b"--diag-suppress=177")
    )

    assert "fma.rn.f32" in nvrtc.compile_ptx(cuda_text(made(sm_90a, fused=False)).text, "made")


@pytest.mark.skipif(not toolchain.compiler_present(), reason="compiles with clang")
@pytest.mark.parametrize("fused", [False, True])
def test_on_gfx942(fused: bool, tmp_path: Path) -> None:
    assembly = build(made(gfx942, fused=fused), directory=tmp_path).assembly

    assert assembly is not None
    assert (re.search(r"^\s+v_(pk_)?(fma|fmac|mad|mac)_", assembly.read_text(), re.MULTILINE) is not None) == fused
