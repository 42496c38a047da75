"""Expansion of the larger listings of tests/corpus/traced: attention, grouped products, split-K."""

from __future__ import annotations

from collections import Counter

import numpy as np

from argus.core.algebra import const
from argus.core.check import check, check_program
from argus.core.dtype import bf16
from argus.core.ir import (
    Arrive,
    Assert,
    Copy,
    Covers,
    Fence,
    Fold,
    For,
    If,
    Kernel,
    Map,
    Mma,
    Relation,
    Sync,
    Wait,
    Where,
    walk,
)
from argus.core.ir.pretty import pretty, program_text
from argus.core.layout import TV
from argus.language import ProgramTemplate
from argus.verifier.api import interpret
from argus.verifier.loader import load
from property_tests.programs import CORPUS

TRACED = CORPUS / "traced"
KERNELS = {
    each.name: each
    for name in ("attention_hopper", "attention_cdna3", "grouped_gemm", "split_k")
    for each in load(str(TRACED / f"{name}.py"))
}


def kernel(name: str) -> Kernel:
    return KERNELS[name].trace()


def instructions(made: Kernel) -> Counter[str]:
    return Counter(stmt.atom.name for stmt in walk(made.body) if isinstance(stmt, Copy | Mma))


def test_all_are_there_and_well_formed() -> None:
    assert list(KERNELS) == [
        "attention_causal",
        "attention_cdna3_mi300x_transpose",
        "attention_cdna3_mi300x_attend",
        "grouped_gemm_fp8",
        "gemm_split_workspace_partial",
        "gemm_split_workspace_combine",
        "gemm_added_atomics_zero",
        "gemm_added_atomics_accumulate",
    ]
    for each in KERNELS.values():
        assert check(each.trace()) == ()
        assert pretty(each.trace()) == pretty(each.trace())


# -- attention on Hopper -------------------------------------------------------------------------------------


def test_attention_moves_tiles_of_one_head_through_three_rings() -> None:
    made = kernel("attention_causal")
    found = instructions(made)
    assert (found["tma_load_4d_sw128"], found["tma_store_4d_sw128"], found["stmatrix_x4"]) == (6, 2, 2)
    announced = [s.bytes for s in walk(made.body) if isinstance(s, Arrive) and s.bytes is not const(0)]
    assert announced == [const(32_768)] * 3
    text = pretty(made)
    assert "alloc q_ring_q: shared bf16 1 x 128 x 128 at Sw<3,3,3> o (1,128,(64,2)):(16384,64,(1,8192))" in text
    assert "tag Q (b=i0, g=i1 // (H // G), h=i1, q=i2, d=i3)" in text


def test_probabilities_are_a_register_operand_with_a_fence() -> None:
    made = kernel("attention_causal")
    products = [stmt for stmt in walk(made.body) if isinstance(stmt, Mma)]
    assert [stmt.atom.name.rpartition("_")[2] for stmt in products] == ["ss", "ss", "rs", "ss", "rs", "rs"]
    assert {stmt.a.buffer.name for stmt in products if stmt.atom.name.endswith("rs")} == {"p"}
    assert [stmt.tiling.repeat[2] for stmt in products] == [8] * 6
    # One fence before the first score, one in each loop, one before the last product: p and O were touched.
    assert sum(isinstance(s, Fence) and s.kind == "wgmma" for s in walk(made.body)) == 4
    assert [s.pending for s in walk(made.body) if isinstance(s, Wait) and s.queue == "wgmma"] == [0, 1, 0, 1, 0, 0]
    lines = [line.strip() for line in pretty(made).splitlines()]
    assert sum(line.startswith("p = ") for line in lines) == 3


def test_key_blocks_descend_from_the_masked_ones() -> None:
    loops = [stmt for stmt in walk(kernel("attention_causal").body) if isinstance(stmt, For)]
    assert [loop.step for loop in loops] == [1, -1, 1, -1, -1]
    masked, clear = loops[3], loops[4]
    for loop, holds in ((masked, True), (clear, False)):
        chosen = [stmt for stmt in walk(loop.body) if isinstance(stmt, Map) and isinstance(stmt.elem, Where)]
        assert bool(chosen) is holds


def test_row_sums_are_reduced_once() -> None:
    made = kernel("attention_causal")
    folds = [(stmt.op, stmt.within) for stmt in walk(made.body) if isinstance(stmt, Fold)]
    assert folds == [("max", "warp"), ("add", "thread")] * 3 + [("add", "warp")]
    claims = [s.claim for s in walk(made.body) if isinstance(s, Assert)]
    assert [claim.of.name for claim in claims if isinstance(claim, Covers)] == ["d", "t", "t"]
    assert "64*wg + i0" in pretty(made)


# -- attention on MI300X -------------------------------------------------------------------------------------


def program(name: str, program_name: str) -> ProgramTemplate:
    namespace: dict[str, object] = {"__name__": name}
    path = TRACED / f"{name}.py"
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), namespace)  # noqa: S102 reason: a corpus file
    found = namespace[program_name]
    assert isinstance(found, ProgramTemplate)
    return found


def test_values_are_transposed_by_an_earlier_launch() -> None:
    made = program("attention_cdna3", "attention_cdna3").trace()
    assert check_program(made) == ()
    assert [launch.kernel.name for launch in made.launches] == ["transpose", "attend"]
    text = program_text(made)
    assert "workspace Vt: global bf16 B x G x 128 x 64*((T + 63) // 64)" in text
    assert "launch attend(Q=Q, K=K, Vt=Vt, O=O) with B=B, H=H, S=S, G=G, T=T, P=64*((T + 63) // 64)" in text


def test_the_transposition_in_the_interpreter() -> None:
    v = np.random.default_rng(0).standard_normal((2, 2, 70, 128)).astype(bf16.numpy)
    found = interpret(kernel("attention_cdna3_mi300x_transpose"), v, np.zeros((2, 2, 128, 128), bf16.numpy))["Vt"]
    assert np.array_equal(found[..., :70].astype(np.float32), v.transpose(0, 1, 3, 2).astype(np.float32))
    assert not found[..., 70:].astype(np.float32).any()


def test_two_groups_are_one_barrier_apart() -> None:
    made = kernel("attention_cdna3_mi300x_attend")
    text = pretty(made)
    for group in (0, 1):
        assert f"if thread // 256 == {group}:\n    sync cta meet" in text
    assert sum(isinstance(stmt, Sync) for stmt in walk(made.body)) == 5
    assert "lds_k[(n + (thread // 256) + 1) % 2, i0, i1 : 64 x 128]" in text
    found = instructions(made)
    assert (found["buffer_load_lds_b32"], found["ds_read_b64"], found["mfma_f32_16x16x16_bf16"]) == (3, 1, 3)


def test_the_sum_of_scores_is_an_operand_register_for_register() -> None:
    """P^T as the second factor has its registers where the sum of S^T has them."""
    made = kernel("attention_cdna3_mi300x_attend")
    scores, sums = [stmt for stmt in walk(made.body) if isinstance(stmt, Mma)][1::-1]
    held, wanted = scores.target.buffer.layout, sums.b.buffer.layout
    assert isinstance(held, TV)
    assert isinstance(wanted, TV)
    (row, column), (n, k) = held.coordinates(), wanted.coordinates()
    assert np.array_equal(row, k)
    assert np.array_equal(column, n)


# -- grouped products ----------------------------------------------------------------------------------------


def test_the_expert_is_the_same_term_in_both_roles_and_in_the_tag() -> None:
    made = kernel("grouped_gemm_fp8")
    text = pretty(made)
    assert "tag A (x=expert[i0 // 128], m=i0, k=i1)" in text
    branches = [stmt.cond for stmt in walk(made.body) if isinstance(stmt, If)]
    assert len(branches) == 2
    assert text.count(">= 0:") == 2
    assert "promise" in text
    found = instructions(made)
    assert found["tma_load_3d_sw128"] == found["tma_load_2d_sw128"] == found["bulk_load_1d"] == 1
    assert found["wgmma_m64n128k32_f32_e4m3_ss"] == 1
    announced = [s.bytes for s in walk(made.body) if isinstance(s, Arrive) and s.bytes is not const(0)]
    assert announced == [const(2 * 128 * 128 + 512)]


def test_scales_are_read_by_all_before_the_slot_is_released() -> None:
    made = kernel("grouped_gemm_fp8")
    lines = [line.strip() for line in pretty(made).splitlines()]
    read = next(at for at, line in enumerate(lines) if line.startswith("copy ld_shared_b32 ring_sa"))
    back = next(at for at, line in enumerate(lines) if line.startswith("arrive ring_empty"))
    assert "sync math meet threads 128" in lines[read:back]
    claims = [s.claim for s in walk(made.body) if isinstance(s, Assert)]
    (claim,) = [claim for claim in claims if isinstance(claim, Relation)]
    assert sorted(of.name for _, of in claim.names) == ["k", "kb", "n", "nb"]
    assert len({tuple(of.view.shape) for _, of in claim.names}) == 1


# -- split sums ----------------------------------------------------------------------------------------------


def test_parts_of_a_sum_in_the_interpreter() -> None:
    """Three steps of k in four parts: one is empty and stores zeros."""
    draw = np.random.default_rng(0)
    a, b = (draw.integers(-3, 4, (rows, 136)).astype(bf16.numpy) for rows in (70, 40))
    found = interpret(kernel("gemm_split_workspace_partial"), a, b, np.full((4, 70, 40), np.nan, np.float32))["part"]
    wide = [x.astype(np.float32) for x in (a, b)]
    assert not found[0].any()
    for part, (low, high) in enumerate(((0, 0), (0, 64), (64, 128), (128, 136))):
        assert np.array_equal(found[part], wide[0][:, low:high] @ wide[1][:, low:high].T)


def test_two_forms_of_a_split_sum() -> None:
    parted = program("split_k", "gemm_split").trace()
    added = program("split_k", "gemm_added").trace()
    assert check_program(parted) == check_program(added) == ()
    assert [launch.kernel.name for launch in parted.launches] == ["partial", "combine"]
    assert [launch.kernel.name for launch in added.launches] == ["zero", "accumulate"]
    assert "launch combine(part=part, C=C) with Z=4, M=M, N=N, K=K" in program_text(parted)
    assert "copy red_global_add_f32_b64 acc -> C[" in pretty(kernel("gemm_added_atomics_accumulate"))
    claims = [s.claim for s in walk(kernel("gemm_split_workspace_combine").body) if isinstance(s, Assert)]
    assert [type(claim).__name__ for claim in claims] == ["Covers", "WrittenOnce"]
