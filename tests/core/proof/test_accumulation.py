"""The budget of accumulation registers (I22), and who may ask for any."""

from __future__ import annotations

from typing import cast

import pytest
from attrs import evolve

from argus.core.diagnostic import ArgusError
from argus.core.dsl.kernel import Template
from argus.core.ir import Alloc, Kernel
from argus.core.proof.limits import budgets
from argus.core.proof.obligation import Obligation
from argus.core.serde import MalformedError, read, write
from argus.core.target import Target
from argus.core.verdict import Proved, Refuted
from argus.kernels.config_names import name_of
from argus.kernels.gemm import gemm
from argus.kernels.schedules.cdna3_staged import Cdna3Staged
from argus.language import DType, RegisterFile, Tensor, bf16, f32, gfx942, kernel, registers, sm_90a, spread
from argus.solvers.cache import Cache
from argus.verifier.api import verify

WIDE = Cdna3Staged(bm=256, bn=320, mfma=16, run=8, vector=8, swizzle=True)
"""320 sums a lane by four waves: they fit its 512 registers, not the 256 that are for sums only."""


def traced(config: Cdna3Staged) -> Kernel:
    return gemm.instance(config, name_of(config))


def test_sums_that_fit_the_file_are_proved() -> None:
    report = verify(traced(evolve(WIDE, bn=256, agprs=True)))

    assert isinstance(report.verdict, Proved)
    assert dict(report.verdict.coverage)["I22"] == 0  # a budget compares no elements


@pytest.mark.share(2)
def test_sums_over_the_file_are_refuted_and_told() -> None:
    assert isinstance(verify(traced(WIDE)).verdict, Proved)
    report = verify(traced(evolve(WIDE, agprs=True)))

    assert isinstance(report.verdict, Refuted)
    (told,) = (each for each in report.diagnostics if each.severity == "error")
    assert told.code == "I22"
    assert "need 320 accumulation registers a thread, gfx942 has 256" in told.message
    assert ("needs", "acc 320") in told.facts


def test_sums_over_the_file_slip_past_without_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    def unasked(made: Kernel, allocs: list[Alloc]) -> tuple[Obligation, ...]:
        del made, allocs
        return ()

    monkeypatch.setattr(budgets, "_accumulation_obligations", unasked)
    assert isinstance(verify(traced(evolve(WIDE, agprs=True)), cache=Cache()).verdict, Proved)


def _asking(target: Target, dtype: DType, file: RegisterFile) -> Template:
    @kernel(target=target, threads=256)
    def asks(A: Tensor["M 64", bf16]) -> None:
        del A
        registers(dtype, spread((64, 64), threads=256, vector=4), file=file)

    return asks


@pytest.mark.parametrize(
    ("target", "dtype", "file", "why"),
    [
        (sm_90a, f32, "accumulation", "sm_90a has no accumulation registers"),
        (gfx942, bf16, "accumulation", "bf16 in accumulation registers"),
        (gfx942, f32, "scalar", "registers of a file"),
    ],
)
def test_what_cannot_be_there_is_refused(target: Target, dtype: DType, file: RegisterFile, why: str) -> None:
    with pytest.raises(ArgusError, match=f"E106.*{why}"):
        _asking(target, dtype, file).trace()


# -- as data ---------------------------------------------------------------------------------------------------


def test_data_keep_the_file_and_it_is_checked() -> None:
    made = traced(Cdna3Staged(agprs=True))
    document = write([made])
    (back,) = read(document)

    assert isinstance(back, Kernel)
    assert write([back]) == document
    rows = cast("list[list[object]]", document["rows"])
    assert sum(row[0] == "Buffer" and row[-2] == "accumulation" for row in rows) == 1
    changed = [[*row[:-2], "accumulation", row[-1]] if row[0] == "Buffer" else row for row in rows]
    with pytest.raises(MalformedError, match="cannot be in accumulation registers"):
        read({**document, "rows": changed})
