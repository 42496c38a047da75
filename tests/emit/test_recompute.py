"""Addresses computed anew in loops, and registers chosen by the thread: kernels that spilled registers do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from argus.core.ir import Kernel
from argus.emit import build as building
from argus.emit import elements
from argus.emit.build import build
from argus.emit.hip.prelude import loosened
from argus.emit.hip.resource_report import ResourceReport
from argus.emit.hip.text import hip_text
from argus.kernels.fp8_cdna3 import gemm_fp8_fnuz
from argus.verifier.loader import load
from property_tests.programs import CORPUS

LISTINGS, PROVED = CORPUS / "traced", CORPUS / "proved"
BIASED = PROVED / "bias_held_by_every_thread.py"


def named(path: Path, name: str) -> Kernel:
    return next(made for each in load(str(path)) if (made := each.trace()).name == name)


def scratch(kernel: Kernel, folder: Path) -> int:
    report = build(kernel, directory=folder).report
    assert isinstance(report, ResourceReport)
    return report.scratch_bytes


def plain(kernel: Kernel) -> tuple[str, ...]:
    return (hip_text(kernel),)


@pytest.mark.share(16, among="addresses computed anew")
@pytest.mark.parametrize(
    ("file", "name"),
    [("attention_cdna3", "attention_cdna3_mi300x_attend"), ("convolution", "conv2d_dilated")],
)
def test_a_kernel_whose_addresses_fill_the_registers_computes_them_anew(
    file: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = named(LISTINGS / f"{file}.py", name)
    made = build(kernel, directory=tmp_path)
    assert isinstance(made.report, ResourceReport)
    assert (made.report.scratch_bytes, made.warnings) == (0, ())
    text = hip_text(kernel, recompute=True)
    assert made.source_text in (text, loosened(text))
    assert made.source_text == made.source.read_text(encoding="utf-8")

    monkeypatch.setattr(building, "compiled_texts", plain)

    assert scratch(kernel, tmp_path) > 0


@pytest.mark.share(3)
def test_a_kernel_that_does_not_spill_keeps_its_addresses(tmp_path: Path) -> None:
    kernel = named(LISTINGS / "convolution.py", "conv2d_same")

    assert build(kernel, directory=tmp_path).source_text == hip_text(kernel)
    assert "opaque(" not in hip_text(kernel)


def test_copies_in_loops_and_behind_them_read_the_thread_anew() -> None:
    kernel = named(LISTINGS / "convolution.py", "conv2d_same")
    text = hip_text(kernel, recompute=True)
    before, _, rest = text[text.index('extern "C"') :].partition("for (int k_ = 0")
    inside, _, behind = rest.partition("\n    }\n")

    assert "again" not in before
    assert "const int again = opaque(thread_);" in inside
    assert behind.count("const int again = opaque(thread_);") == 1


@pytest.mark.nightly
def test_addresses_behind_a_loop_do_not_take_registers_within(tmp_path: Path) -> None:
    kernel = gemm_fp8_fnuz.trace("interleaved")
    made = build(kernel, directory=tmp_path, read_code=True)

    assert made.source_text == hip_text(kernel, recompute=True)
    assert (made.report.spills, made.warnings) == (False, ())


def test_a_register_that_the_thread_chooses_is_selected_and_not_addressed(tmp_path: Path) -> None:
    kernel = named(BIASED, "added")

    assert "chosen(biases_, thread_)" in hip_text(kernel)
    assert scratch(kernel, tmp_path) == 0


def test_addressed_registers_would_be_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    addressed = elements.CHOSEN[: elements.CHOSEN.index("    T left")] + "    return held[at];\n}\n"
    monkeypatch.setattr("argus.emit.hip.text.CHOSEN", addressed)

    assert scratch(named(BIASED, "added"), tmp_path) > 0
