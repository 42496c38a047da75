"""What breaks a rule of the machine is reported, with the instruction; the same code without the fault is not."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve

from argus.core.diagnostic import ArgusError
from argus.interp.gfx942.code_object import CodeObject, read_code_object
from argus.interp.gfx942.launch import Executed, Tensor, execute
from tests.interp.gfx942.assembled import kernels

_SETUP = """
s_load_dwordx4 s[4:7], s[0:1], 0x0
v_lshlrev_b32_e32 v1, 2, v0
s_waitcnt lgkmcnt(0)
"""
_STORE = "global_store_dword v1, v2, s[6:7]\n"
_LOAD = "global_load_dword v2, v1, s[4:5]\n"
_OTHER = "v_xor_b32_e32 v3, 0x100, v1\n"
"""The address of the same lane of the other of two waves."""
_WRITE = "ds_write_b32 v1, v0\n"
_WRITE_OTHER = "ds_write_b32 v3, v0\n"
_READ = "ds_read_b32 v2, v1\n"
_READ_OTHER = "ds_read_b32 v2, v3\n"
_SPILL = "v_writelane_b32 v9, s30, 3\nv_writelane_b32 v9, s2, 4\ns_nop 0\n"
_OF_SPILLED = f"s_nop 3\nv_mov_b32_e32 v2, s8\n{_STORE}"
_BRANCH = "s_and_b32 s8, s30, 3\ns_cmp_eq_u32 s8, 4\ns_cbranch_scc1 1\n"
_ADD = "ds_add_u32 v1, v0\n"
_WAIT = "s_waitcnt lgkmcnt(0)\n"
_BARRIER = "s_barrier\n"
_SCALARS = "s_load_dword s8, s[4:5], 0x0\ns_load_dword s9, s[4:5], 0x4\n"
_USE_SCALAR = f"v_mov_b32_e32 v2, s8\n{_STORE}"
_DIRECT = "s_mov_b32 m0, 0\ns_nop 0\nglobal_load_lds_dword v1, s[4:5]\n"
_FEW = "v_cmp_gt_u32_e32 vcc, 3, v0\ns_and_saveexec_b64 s[8:9], vcc\nv_mov_b32_e32 v2, 1\n"
_SHIFTED = f"v_add_u32_dpp v2, v2, v2 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:0\n{_STORE}"
_SUM_APART = "s_nop 1\nv_mfma_f32_16x16x16_bf16 v[8:11], v[12:13], v[14:15], v[16:19]\n"
_OVER_ADDEND = "v_mov_b32_e32 v16, 0\n"
_CARRY = "v_mad_u64_u32 v[2:3], s[8:9], v0, -1, v[8:9]\n"
_ZEROS = "".join(f"v_mov_b32_e32 v{register}, 0\n" for register in range(8, 28))
_PRODUCT = "v_mfma_f32_16x16x16_bf16 v[8:11], v[12:13], v[14:15], v[8:11]\n"
_SUM = "v_mov_b32_e32 v2, v8\n"

# For each: the kind of the finding, the code that has it, and the code that has not.
CASES: dict[str, tuple[str, str, str]] = {
    "load_used": ("used before its wait", f"{_LOAD}{_STORE}", f"{_LOAD}s_waitcnt vmcnt(0)\n{_STORE}"),
    "count_too_high": (
        "used before its wait",
        f"{_LOAD}s_waitcnt vmcnt(1)\n{_STORE}",
        f"{_LOAD}global_load_dword v3, v1, s[4:5]\ns_waitcnt vmcnt(1)\n{_STORE}",
    ),
    "load_overtaken_in_order": (
        "used before its wait",
        f"ds_write_b32 v1, v0\nds_read_b32 v2, v1\n{_LOAD}s_waitcnt vmcnt(0) lgkmcnt(0)\n{_STORE}",
        f"{_LOAD}{_LOAD}s_waitcnt vmcnt(0)\n{_STORE}",
    ),
    "load_overwritten": (
        "used before its wait",
        f"{_LOAD}v_mov_b32_e32 v2, 0\n{_STORE}",
        f"{_LOAD}s_waitcnt vmcnt(0)\nv_mov_b32_e32 v2, 0\n{_STORE}",
    ),
    "scalar_out_of_order": (
        "used before its wait",
        f"{_SCALARS}s_waitcnt lgkmcnt(1)\nv_mov_b32_e32 v2, s8\n" + _STORE,
        f"{_SCALARS}{_WAIT}v_mov_b32_e32 v2, s8\n" + _STORE,
    ),
    "lds_read_used": (
        "used before its wait",
        f"{_WRITE}{_READ}{_STORE}",
        f"{_WRITE}{_READ}{_WAIT}{_STORE}",
    ),
    "direct_load_read": (
        "used before its wait",
        f"{_DIRECT}{_READ}{_WAIT}{_STORE}",
        f"{_DIRECT}s_waitcnt vmcnt(0)\n{_BARRIER}v_and_b32_e32 v1, 0xff, v1\n{_READ}{_WAIT}{_STORE}",
    ),
    "register_unwritten": (
        "uninitialised register",
        f"v_add_u32_e32 v2, 1, v9\n{_STORE}",
        f"v_mov_b32_e32 v2, 1\n{_STORE}",
    ),
    "half_unwritten": (
        "uninitialised register",
        f"v_mov_b32_e32 v8, 3\nv_mad_u64_u32 v[2:3], s[8:9], v0, 5, v[8:9]\ns_nop 1\nv_mov_b32_e32 v2, v3\n{_STORE}",
        f"v_mov_b32_e32 v8, 3\nv_mad_u64_u32 v[2:3], s[8:9], v0, 5, v[8:9]\n{_STORE}",
    ),
    "carry_unwritten": (
        "uninitialised register",
        f"v_mov_b32_e32 v8, 3\n{_CARRY}s_nop 1\nv_mov_b32_e32 v2, s8\n{_STORE}",
        f"v_mov_b32_e32 v8, 3\nv_mov_b32_e32 v9, 0\n{_CARRY}s_nop 1\nv_mov_b32_e32 v2, s8\n{_STORE}",
    ),
    "short_unwritten": (
        "uninitialised register",
        f"global_load_short_d16 v2, v1, s[4:5]\ns_waitcnt vmcnt(0)\n{_STORE}",
        "global_load_short_d16 v2, v1, s[4:5]\ns_waitcnt vmcnt(0)\nglobal_store_short v1, v2, s[6:7]\n",
    ),
    "masked_unwritten": (
        "uninitialised register",
        f"global_load_short_d16 v2, v1, s[4:5]\ns_waitcnt vmcnt(0)\nv_or_b32_e32 v2, 0xffff, v2\n{_STORE}",
        f"global_load_short_d16 v2, v1, s[4:5]\ns_waitcnt vmcnt(0)\nv_and_b32_e32 v2, 0xffff, v2\n{_STORE}",
    ),
    "operand_unwritten": (
        "uninitialised register",
        f"{_ZEROS}s_nop 1\nv_mfma_f32_16x16x16_bf16 v[8:11], v[12:13], v[28:29], v[8:11]\n",
        f"{_ZEROS}s_nop 1\nv_mfma_f32_16x16x16_bf16 v[8:11], v[12:13], v[14:15], v[8:11]\n",
    ),
    "scalar_unwritten": (
        "uninitialised register",
        f"v_mov_b32_e32 v2, s30\n{_STORE}",
        f"v_mov_b32_e32 v2, s2\n{_STORE}",
    ),
    "mask_unwritten": (
        "uninitialised register",
        f"s_or_b64 s[8:9], s[30:31], exec\ns_mov_b32 exec_lo, s30\nv_mov_b32_e32 v2, 1\n{_STORE}",
        f"s_or_b64 s[8:9], s[30:31], exec\ns_and_b64 exec, exec, s[8:9]\nv_mov_b32_e32 v2, 1\n{_STORE}",
    ),
    "branch_unwritten": (
        "uninitialised register",
        f"{_BRANCH}s_cmp_eq_u32 s8, 3\ns_cbranch_scc1 1\ns_nop 0\n",
        f"{_BRANCH}s_nop 0\n",
    ),
    "spilled_unwritten": (
        "uninitialised register",
        f"{_SPILL}v_readlane_b32 s8, v9, 3\n{_OF_SPILLED}",
        f"{_SPILL}v_readlane_b32 s8, v9, 4\n{_OF_SPILLED}",
    ),
    "lanes_unwritten": (
        "uninitialised register",
        f"{_FEW}s_mov_b64 exec, s[8:9]\n{_STORE}",
        f"{_FEW}{_STORE}",
    ),
    "lds_unwritten": (
        "uninitialised LDS",
        f"{_READ}{_WAIT}{_STORE}",
        f"{_WRITE}{_READ}{_WAIT}{_STORE}",
    ),
    "outside_of_lds": (
        "out of LDS",
        "ds_write_b32 v1, v0 offset:1020\n",
        "ds_write_b32 v1, v0 offset:512\n",
    ),
    "outside_of_tensor": (
        "out of bounds",
        f"global_load_dword v2, v1, s[4:5] offset:8\ns_waitcnt vmcnt(0)\n{_STORE}",
        f"global_load_dword v2, v1, s[4:5] offset:0\ns_waitcnt vmcnt(0)\n{_STORE}",
    ),
    "stores_to_an_input": (
        "out of bounds",
        "global_store_dword v1, v0, s[4:5]\n",
        "global_store_dword v1, v0, s[6:7]\n",
    ),
    "atomic_between_elements": (
        "misaligned",
        "v_add_u32_e32 v1, 2, v1\nv_min_u32_e32 v1, 8, v1\nv_or_b32_e32 v1, 2, v1\nglobal_atomic_add v1, v0, s[6:7]\n",
        "global_atomic_add v1, v0, s[6:7]\n",
    ),
    "no_barrier": (
        "LDS race",
        f"{_WRITE}{_WAIT}{_OTHER}{_READ_OTHER}{_WAIT}{_STORE}",
        f"{_WRITE}{_WAIT}{_BARRIER}{_OTHER}{_READ_OTHER}{_WAIT}{_STORE}",
    ),
    "written_late": (
        "LDS race",
        f"{_WRITE}{_BARRIER}{_OTHER}{_READ_OTHER}{_WAIT}{_STORE}",
        f"{_WRITE}{_WAIT}{_BARRIER}{_OTHER}{_READ_OTHER}{_WAIT}{_STORE}",
    ),
    "read_late": (
        "LDS race",
        f"{_WRITE}{_READ}{_BARRIER}{_OTHER}{_WRITE_OTHER}{_WAIT}{_STORE}",
        f"{_WRITE}{_READ}{_WAIT}{_BARRIER}{_OTHER}{_WRITE_OTHER}{_WAIT}{_STORE}",
    ),
    "atomic_and_read": (
        "LDS race",
        f"{_OTHER}{_WRITE}{_WAIT}{_BARRIER}{_ADD}{_WAIT}{_READ_OTHER}{_WAIT}{_STORE}",
        f"{_OTHER}{_WRITE}{_WAIT}{_BARRIER}{_ADD}ds_add_u32 v3, v0\n{_WAIT}{_BARRIER}{_READ_OTHER}{_WAIT}{_STORE}",
    ),
    "sum_read_early": (
        "missing wait states",
        f"{_ZEROS}s_nop 1\n{_PRODUCT}s_nop 5\n{_SUM}{_STORE}",
        f"{_ZEROS}s_nop 1\n{_PRODUCT}s_nop 6\n{_SUM}{_STORE}",
    ),
    "operand_written_late": (
        "missing wait states",
        f"{_ZEROS}v_mov_b32_e32 v13, 0\ns_nop 0\n{_PRODUCT}",
        f"{_ZEROS}v_mov_b32_e32 v13, 0\ns_nop 1\n{_PRODUCT}",
    ),
    "sum_as_operand": (
        "missing wait states",
        f"{_ZEROS}s_nop 1\n{_PRODUCT}s_nop 5\nv_mfma_f32_16x16x16_bf16 v[16:19], v[8:9], v[14:15], v[16:19]\n",
        f"{_ZEROS}s_nop 1\n{_PRODUCT}s_nop 6\nv_mfma_f32_16x16x16_bf16 v[16:19], v[8:9], v[14:15], v[16:19]\n",
    ),
    "sum_overlapped": (
        "missing wait states",
        f"{_ZEROS}s_nop 1\n{_PRODUCT}s_nop 3\nv_mfma_f32_16x16x16_bf16 v[16:19], v[12:13], v[14:15], v[10:13]\n",
        f"{_ZEROS}s_nop 1\n{_PRODUCT}v_mfma_f32_16x16x16_bf16 v[8:11], v[12:13], v[14:15], v[8:11]\n",
    ),
    "addend_overwritten": (
        "missing wait states",
        f"{_ZEROS}{_SUM_APART}s_nop 1\n{_OVER_ADDEND}",
        f"{_ZEROS}{_SUM_APART}s_nop 2\n{_OVER_ADDEND}",
    ),
    "mask_read_early": (
        "missing wait states",
        f"v_cmp_gt_u32_e32 vcc, 3, v0\ns_nop 0\nv_cndmask_b32_e32 v2, v0, v1, vcc\n{_STORE}",
        f"v_cmp_gt_u32_e32 vcc, 3, v0\ns_nop 1\nv_cndmask_b32_e32 v2, v0, v1, vcc\n{_STORE}",
    ),
    "exponential_read_early": (
        "missing wait states",
        f"v_exp_f32_e32 v2, v0\nv_add_f32_e32 v2, 1.0, v2\n{_STORE}",
        f"v_exp_f32_e32 v2, v0\ns_nop 0\nv_add_f32_e32 v2, 1.0, v2\n{_STORE}",
    ),
    "lanes_moved_early": (
        "missing wait states",
        f"v_mov_b32_e32 v2, v0\ns_nop 0\n{_SHIFTED}",
        f"v_mov_b32_e32 v2, v0\ns_nop 1\n{_SHIFTED}",
    ),
    "m0_read_early": (
        "missing wait states",
        "s_mov_b32 m0, 0\nglobal_load_lds_dword v1, s[4:5]\n",
        f"{_DIRECT}",
    ),
}


@pytest.fixture(scope="module")
def code() -> CodeObject:
    made = {f"{name}_{which}": _SETUP + case[1 + number] for name, case in CASES.items() for number, which in _WHICH}
    return kernels({**made, "endless": ".Lagain:\ns_branch .Lagain"})


_WHICH = ((0, "wrong"), (1, "right"))


def run(code: CodeObject, name: str, seed: int = 0, limit: int = 1000) -> Executed:
    threads = 128 if CASES.get(name.rpartition("_")[0], ("",))[0] == "LDS race" else 64
    held = np.arange(threads, dtype=np.uint32)
    tensors = (Tensor("input", held), Tensor("output", np.zeros(threads, np.uint32), written=True))
    return execute(code, name, [2], threads, tensors, seed=seed, limit=limit)


@pytest.mark.parametrize("name", CASES)
def test_a_fault_is_found_in_every_order_of_waves(code: CodeObject, name: str) -> None:
    kind = CASES[name][0]

    for seed in range(2):
        wrong, right = run(code, f"{name}_wrong", seed), run(code, f"{name}_right", seed)

        assert kind in {each.kind for each in wrong.findings}, wrong.findings
        assert not right.findings


def test_a_finding_names_the_instruction_and_the_one_it_depends_on(code: CodeObject) -> None:
    (found,) = run(code, "load_used_wrong").findings

    assert found.instruction == "global_store_dword v1, v2, s[6:7]"
    assert "`global_load_dword v2, v1, s[4:5]`" in found.what
    assert found.address - found.other == 8
    assert found.where.workgroup == (0, 0, 0)


def test_a_kernel_without_end_is_stopped(code: CodeObject) -> None:
    assert [each.kind for each in run(code, "endless").findings] == ["no end"]


def test_arguments_that_do_not_fit_the_kernel_are_refused(code: CodeObject) -> None:
    with pytest.raises(ArgusError, match="takes 2 arguments, got 1"):
        execute(code, "endless", [1], 64, (3,))
    with pytest.raises(ArgusError, match="has no kernel `other`"):
        execute(code, "other", [1], 64, ())
    with pytest.raises(ArgusError, match="1024 work-items at most, got 1088"):
        execute(code, "endless", [1], [64, 17], (0, 0))


def test_code_that_leaves_its_bounds_is_refused() -> None:
    made = kernels({"away": "s_branch 0x7000", "few": "v_mov_b32_e32 v40, 0"})
    described = made.kernels["few"]
    few = evolve(described, descriptor=evolve(described.descriptor, vgprs=32, agprs=0))

    with pytest.raises(ArgusError, match="outside of its code"):
        execute(made, "away", [1], 64, (0, 0))
    with pytest.raises(ArgusError, match="uses v40"):
        execute(evolve(made, kernels={"few": few}), "few", [1], 64, (0, 0))


def test_an_operand_that_is_no_register_is_named() -> None:
    made = kernels({"aperture": "s_mov_b32 s8, src_pops_exiting_wave_id"})

    with pytest.raises(ArgusError, match="operand code 239 of `s_mov_b32`"):
        execute(made, "aperture", [1], 64, (0, 0))


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"\x7fELF\x02" + bytes(100)])
def test_what_is_no_code_object_is_refused(data: bytes) -> None:
    with pytest.raises(ArgusError) as caught:
        read_code_object(data)

    assert caught.value.diagnostic.code == "E420"
