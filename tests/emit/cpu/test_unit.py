"""Units: what of an emitted prelude is kept, and that all else has a counterpart on the CPU."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import argus.emit.cpu
from argus.core.dsl.kernel import Template
from argus.emit.cpu.counterparts import counterpart
from argus.emit.cpu.unit import defined_name, definitions, leaves, unit_of
from argus.emit.cuda.next_divisions import EARLY
from argus.emit.cuda.prelude import PRELUDE as CUDA
from argus.emit.fp8 import IN_HARDWARE
from argus.emit.hip.accumulation import ACCUMULATION
from argus.emit.hip.direct import DIRECT
from argus.emit.hip.lanes import LANES
from argus.emit.hip.mma import INTEGERS
from argus.emit.hip.prelude import PRELUDE as HIP
from argus.emit.hip.reductions import REDUCTIONS
from argus.emit.hip.text import hip_text
from argus.kernels.fp8_cdna3 import gemm_fp8_fnuz
from argus.kernels.i8_cdna3 import gemm_i8

DEVICE = Path(argus.emit.cpu.__file__).parent / "device"
PRELUDES = {"sm_90a": CUDA + IN_HARDWARE + EARLY, "gfx942": HIP + INTEGERS + DIRECT + ACCUMULATION + LANES + REDUCTIONS}


@pytest.mark.parametrize("target", PRELUDES)
def test_every_helper_of_the_machine_has_a_counterpart(target: str) -> None:
    header = "\n".join((DEVICE / name).read_text(encoding="utf-8") for name in ("api.h", f"{target}.h"))
    defined = set(re.findall(r"\w+", header))
    gone = [defined_name(item) for _, item in definitions(PRELUDES[target]) if leaves(item)]

    assert len(gone) > 5
    assert {name for name in gone if name is not None} - defined <= {"ARRIVES_AT", "__builtin_inff", "__builtin_nanf"}


def test_index_arithmetic_of_a_prelude_is_executed_as_it_was_emitted() -> None:
    kept = {defined_name(item) for _, item in definitions(CUDA) if not leaves(item)}
    assert {"floor_div", "floor_mod", "descriptor", "descriptor_mn", "swizzled", "fill_b128"} <= kept

    kept = {defined_name(item) for _, item in definitions(HIP) if not leaves(item)}
    assert {"floor_div", "guard", "descriptor", "operand"} <= kept


@pytest.mark.share(4)
@pytest.mark.parametrize("family", [gemm_fp8_fnuz, gemm_i8], ids=lambda each: each.name)
def test_every_array_in_lds_is_guarded(family: Template) -> None:
    """Also of elements whose C type has two words; and accumulation registers, which a CPU lacks, are not asked for."""
    text = hip_text(family.trace("interleaved"))
    made = unit_of(text, "gfx942", "kernel").text
    arrays = re.findall(r"__shared__ .*?(\w+)\[\d+\];", text)

    assert arrays
    assert re.findall(r"CPU_LDS_ARRAY\((\w+)\)", made) == arrays
    assert '"a255"' in text
    assert '"a255"' not in made


def test_a_name_gives_a_counterpart_its_parameters() -> None:
    assert "cpu_wgmma(d, 64, KIND_BF16, 0, a, b, keep, 0, 1, line)" in counterpart("wgmma_m64n64k16_f32_bf16_rs_b_mn")
    assert "cpu_tma_load(blocks, to, map, barrier, 3, at, line)" in counterpart("tma_load_3d_to")
    assert "cpu_matrices(at, held, 4, 1, 1, line)" in counterpart("ldmatrix_x4_trans")
    assert counterpart("no_such_helper") == ""
