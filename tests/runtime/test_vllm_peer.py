"""vLLM's kernel as a peer: what is taken out of its text, and how rows are aligned to tiles."""

from __future__ import annotations

import pytest
import torch

from benchmarks.peers.vllm_moe import sorted_rows, taken

TEXT = """import vllm
SETTING = vllm.envs

@triton.jit
def write_zeros_to_output(
    c_ptr,
):
    tl.store(c_ptr, 0)

@triton.jit
def fused_moe_kernel_gptq_awq():
    pass

@triton.jit
def fused_moe_kernel(a_ptr):
    # as it is
    write_zeros_to_output(a_ptr)

def invoke(x):
    return SETTING
"""


def test_two_functions_are_taken_as_they_are() -> None:
    found = taken(TEXT)

    assert found.count("@triton.jit") == 2
    assert "    # as it is\n    write_zeros_to_output(a_ptr)\n" in found
    assert not any(other in found for other in ("vllm", "gptq", "invoke"))


def test_a_text_without_them_is_refused() -> None:
    with pytest.raises(ValueError, match="no function write_zeros_to_output"):
        taken(TEXT.replace("write_zeros_to_output(\n", "other(\n"))


def test_rows_of_each_expert_begin_at_a_tile() -> None:
    places, owners, total = sorted_rows(torch, (1, 0, 5), 4, "cpu")

    assert places.tolist() == [0, 6, 6, 6, 1, 2, 3, 4, 5, 6, 6, 6]
    assert owners.tolist() == [0, 2, 2]
    assert total.tolist() == [12]
