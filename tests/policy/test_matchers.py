from functools import cache

import pytest

from argus.core.ir import Kernel
from argus.kernels.fp8 import gemm_fp8
from argus.policy import anatomy
from argus.policy.matchers import MATCHERS
from argus.search.designs.designs import design, kernel_of
from argus.search.techniques import TRANSFORMATIONS

CASES = {
    "multi_pass_epilogue": ("cooperative pingpong", "columns_64 columns_192 narrow hopper_stages3_whole"),
    "predicated_loads": ("narrow staged cdna3staged", "cooperative cdna3 cdna3staged_guarded"),
    "bank_conflicts": (
        "staged staged_vector8 cdna3staged split_2",
        "staged_vector8_swizzle64 cdna3staged_run8_swizzle cdna3",
    ),
    "direct_stores": ("narrow skinny staged cdna3", "cooperative staged_box"),
    "equal_register_counts": ("skinny split_2 hopper_norealloc", "cooperative narrow"),
    "few_stages": ("cooperative cdna3 small", "columns_64 narrow staged"),
    "few_splits": ("split_2 split_4", "split_8 clustered narrow"),
    "few_waves": ("cdna3 cdna3staged", "cdna3_pingpong cdna3staged_bn128_waves2x4_mfma16 narrow"),
    "no_sched_barrier": ("cdna3 cdna3staged", "cdna3staged_pinned cooperative"),
    "no_ping_pong": ("cooperative cdna3staged", "pingpong cdna3_pingpong staged"),
    "large_mfma": ("cdna3 cdna3staged", "cdna3_pingpong cdna3staged_mfma16 cooperative"),
    "hoistable_loads": ("split_4", "cooperative staged"),
    "no_tma_loads": ("narrow staged staged_vector8_asynchronous", "staged_tma cooperative cdna3"),
    "small_bm": ("staged skinny narrow", "cooperative staged_bm128"),
    "has_mainloop": ("staged cooperative cdna3", ""),
    "narrow_lds_reads": ("cdna3staged", "cdna3staged_run8 cdna3 staged"),
    "narrow_loads": ("staged narrow cdna3staged", "staged_vector8 cooperative cdna3"),
    "small_bn": ("staged columns_192 cdna3", "cooperative cdna3_pingpong"),
    "no_cluster": ("cooperative staged cdna3", "clustered split_2"),
    "no_priority": ("cdna3 cdna3staged", "cdna3_pingpong cdna3staged_priority cooperative"),
    "no_roles": ("staged narrow cdna3", "cooperative staged_tma"),
    "no_split_k": ("staged cooperative cdna3", "split_2"),
    "single_stage": ("staged narrow cdna3_pingpong cdna3staged", "staged_stages2 cdna3 cooperative"),
    "not_persistent": ("staged narrow cdna3 hopper_nopersistent", "cooperative skinny"),
    "one_warpgroup": ("staged staged_tma skinny", "cooperative cdna3"),
    "row_major_order": ("staged cooperative cdna3", "super_tiled hopper_curve16 cdna3_pingpong staged_group8"),
    "rolled_loops": ("cdna3 cdna3_pingpong", "cooperative"),
    "no_swap_ab": ("cooperative columns_64", "skinny cdna3"),
    "multi_buffer_epilogue": ("cooperative clustered", "hopper_turns1 columns_64 hopper_stages3_whole"),
    "small_bk": ("staged cooperative", "skinny hopper_bk128_stages2"),
    "unplaced_accumulators": ("cdna3 cdna3_pingpong", "cdna3_agprs cdna3staged_agprs cdna3pingpong_agprs cooperative"),
    "fp8_accumulation": ("fp8", "fp8_promoted cooperative"),
    "loads_via_registers": ("narrow staged cdna3", "staged_vector8_asynchronous cooperative cdna3staged_direct"),
    "serial_wgmma": ("staged skinny hopper_noflight", "cooperative cdna3"),
    "whole_fragment_loads": ("cdna3 cdna3staged", "cdna3_pingpong cooperative"),
}


@cache
def kernel(name: str) -> Kernel:
    match name:
        case "fp8":
            return gemm_fp8.trace("columns_128")
        case "fp8_promoted":
            return TRANSFORMATIONS["fp8-promotion"].rewrite(kernel("fp8"))[0]
        case _:
            return kernel_of(design(name))


def test_every_matcher_has_cases() -> None:
    assert CASES.keys() == MATCHERS.keys()


@pytest.mark.share(4)
@pytest.mark.parametrize("matcher", CASES)
def test_a_matcher_tells_kernels_apart(matcher: str) -> None:
    true, false = (names.split() for names in CASES[matcher])

    assert {name: MATCHERS[matcher](kernel(name)) for name in true} == dict.fromkeys(true, True)
    assert {name: MATCHERS[matcher](kernel(name)) for name in false} == dict.fromkeys(false, False)


def test_conflicts_are_those_of_the_bank_model() -> None:
    found = {str(copy.atom): degree for copy, degree in anatomy.bank_conflicts(kernel("staged_vector8"))}
    swizzled = {str(copy.atom): degree for copy, degree in anatomy.bank_conflicts(kernel("staged_vector8_swizzle64"))}

    assert found == {"st_shared_b128": 4}
    assert swizzled == {"st_shared_b128": 1}
