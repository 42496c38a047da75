"""Limits that the proof and the emitted text share: buffer descriptors, and the alignment of tensors in LDS."""

from __future__ import annotations

from pathlib import Path

import pytest

from argus.core.diagnostic import ArgusError
from argus.core.ir import Alloc, Kernel, walk
from argus.core.memory.placement import bytes_of, padded_bytes
from argus.core.proof.limits import budgets, integers
from argus.core.target import DESCRIPTOR_BYTES
from argus.core.verdict import Proved, Refuted
from argus.emit.build import build
from argus.emit.hip.resource_report import ResourceReport
from argus.emit.hip.text import hip_text
from argus.emit.hip.toolchain import compiler_present
from argus.verifier.kernel import verify
from argus.verifier.loader import load

CORPUS = Path(__file__).parents[1] / "corpus"
DESCRIPTOR = "refuted/descriptor_short_by_twelve_bytes.py"
PADDED = "refuted/lds_over_budget_by_alignment.py"


def of(file: str) -> Kernel:
    return next(iter(load(str(CORPUS / file)))).trace()


def shared_bytes(kernel: Kernel) -> int:
    return sum(padded_bytes(s.buffer) for s in walk(kernel.body) if isinstance(s, Alloc) and s.buffer.space == "shared")


def test_a_descriptor_spans_what_the_proof_allows() -> None:
    text = hip_text(of("proved/descriptor_of_its_largest_span.py"))

    assert text.count(f"0x{DESCRIPTOR_BYTES:X}u") == 3
    assert "FFFF" not in text.replace(f"0x{DESCRIPTOR_BYTES:X}u", "")


@pytest.mark.share(6)
@pytest.mark.skipif(not compiler_present(), reason="compiles with clang")
@pytest.mark.parametrize("file", ["proved/many_small_tensors_in_lds.py", "proved/double_buffer.py"])
def test_lds_is_what_the_proof_counts(file: str, tmp_path: Path) -> None:
    report = build(of(file), directory=tmp_path).report

    assert isinstance(report, ResourceReport)
    assert report.lds_bytes == shared_bytes(of(file))


@pytest.mark.skipif(not compiler_present(), reason="compiles with clang")
def test_what_the_proof_refutes_does_not_compile(tmp_path: Path) -> None:
    with pytest.raises(ArgusError, match="E304"):
        build(of(PADDED), directory=tmp_path)


def test_without_the_shared_limits_both_kernels_would_be_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(verify(of(DESCRIPTOR)).verdict, Refuted)
    assert isinstance(verify(of(PADDED)).verdict, Refuted)

    monkeypatch.setattr(integers, "DESCRIPTOR_BYTES", (1 << 32) - 1)
    monkeypatch.setattr(budgets, "padded_bytes", bytes_of)
    assert isinstance(verify(of(DESCRIPTOR)).verdict, Proved)
    assert isinstance(verify(of(PADDED)).verdict, Proved)
