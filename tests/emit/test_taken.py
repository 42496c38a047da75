"""Code that the compiler may order across waits is taken only where everything stands between the same waits."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel, Policy
from argus.emit.build import build
from argus.emit.hip import taken
from argus.emit.hip.prelude import loosened
from argus.emit.hip.text import compiled_texts
from argus.kernels.gemm import gemm
from argus.language import free_order, kernel, sm_90a


@pytest.mark.share(32, among="emit: taken")
def test_code_in_which_everything_stands_is_taken(tmp_path: Path) -> None:
    made = build(gemm.trace("interleaved_any"), directory=tmp_path, read_code=True)

    assert made.source_text == loosened(made.source_text)
    assert (made.report.spills, made.warnings) == (False, ())


def double_buffer() -> Kernel:
    made = gemm.trace("cdna3")
    return evolve(made, prologue=(Policy("free_order"), *made.prologue))


def always(_kernel: Kernel, _text: str, _seconds: float) -> bool:
    return True


@pytest.mark.share(32, among="emit: taken")
def test_code_in_which_the_compiler_moves_something_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    freely, held, *_ = compiled_texts(double_buffer())
    assert freely == loosened(held) != held
    assert build(double_buffer(), directory=tmp_path).source_text == held

    monkeypatch.setattr(taken, "stands", always)
    wrong = build(double_buffer(), directory=tmp_path, read_code=True)

    assert wrong.source_text == freely
    assert "E308" in {each.code for each in wrong.warnings}


def test_code_of_other_targets_is_not_held() -> None:
    @kernel(target=sm_90a, threads=128)
    def freely() -> None:
        free_order()

    with pytest.raises(ArgusError, match="not held between waits") as refused:
        freely.trace()
    assert refused.value.diagnostic.code == "E106"
