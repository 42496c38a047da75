// FlashAttention-3's kernels behind C functions, so that they can be called on the tensors of any library.
//
// They start the kernels that FlashAttention's own entries, mha_fwd and mha_bwd, start by default: one head dimension
// for q, k and v, no split of the keys. Compiled, with the kernels, by flash_attention_3.py.
//
// All functions return a cudaError_t. FlashAttention itself ends the process if it cannot launch.

#include <cstdint>

#include <cuda_runtime.h>
#include <cutlass/numeric_types.h>

#include "flash.h"

template <int D, bool PackHeads>
void run_packed(Flash_fwd_params& given, cudaStream_t stream);  // flash_attention_3_packed.cu

// Strides count elements; that of the last dimension is 1. Addresses and strides are multiples of 16 bytes, as TMA moves
// the elements. Of packed sequences the first dimension of rows counts those of all sequences, and batch is not read.
struct fa3_tensor {
    void* data;
    int64_t batch, row, head;
};

// o = softmax(scale * q k^T) v for each head, and lse: the logarithms, to base e, of the sums of exponentials.
//
// q and o: [batch, heads, seqlen_q, dim]; k and v: [batch, heads_kv, seqlen_k, dim]; lse: float, contiguous
// [batch, heads, seqlen_q]. Causal: the last query sees all keys, the one before it all but the last, and so on.
//
// Packed, if starts_q is not null: q and o are [heads, total_q, dim], k and v [heads_kv, total_k, dim], lse [heads,
// total_q]; sequence b has the rows from starts_q[b] to starts_q[b + 1] and the keys from starts_k[b] on. seqlen_q and
// seqlen_k are then the longest. pack_heads: a tile holds several heads of q.
//
// e4m3: q, k and v are of that type, o is of bf16; factors of each, [batch, heads_kv], contiguous.
//
// workspace: ints on the device that no other launch may use meanwhile: one if causal, 4 * (batch rounded up to a
// multiple of 4) + 1 if packed.
struct fa3_attention {
    fa3_tensor q, k, v, o;
    float* lse;
    int* workspace;
    const int *starts_q, *starts_k;
    const float *factor_q, *factor_k, *factor_v;
    int batch, heads, heads_kv, seqlen_q, seqlen_k, total_q, total_k, dim;
    float scale;
    int causal, e4m3, pack_heads, sm_count;
};

// The gradients of q, k and v by o's, d_o, after fa3_forward. Whole tensors of bf16.
//
// row_sums, lse_log2: float, batch * heads * (seqlen_q + 128) elements; sum_dq: the same count times dim; sum_dk and
// sum_dv, if heads and heads_kv differ: float, batch * heads_kv * (seqlen_k + 128) * dim; turns: int, batch * heads *
// (seqlen_q / 64 + 1) + 2 * batch * heads_kv * (seqlen_k / 128 + 1). Deterministic: sums are made in a fixed order.
struct fa3_gradients {
    fa3_attention forward;
    fa3_tensor d_o, d_q, d_k, d_v;
    float *row_sums, *lse_log2, *sum_dq, *sum_dk, *sum_dv;
    int* turns;
    int deterministic;
};

namespace {

int rounded(int count, int multiple) { return (count + multiple - 1) / multiple * multiple; }

bool is_valid(const fa3_attention& of) {
    const bool some = of.batch > 0 && of.heads > 0 && of.heads_kv > 0 && of.seqlen_q > 0 && of.seqlen_k > 0;
    return some && of.heads % of.heads_kv == 0;
}

// What is not named below stays zero: pages, a cache to append to, rotary embeddings, splits.
template <class Params>
Params filled(const fa3_attention& of) {
    Params given{};
    given.is_bf16 = !of.e4m3;
    given.is_e4m3 = of.e4m3;
    given.arch = 90;
    given.num_sm = of.sm_count;

    given.q_ptr = of.q.data;
    given.k_ptr = of.k.data;
    given.v_ptr = of.v.data;
    given.o_ptr = of.o.data;
    given.softmax_lse_ptr = of.lse;
    given.q_batch_stride = of.q.batch, given.q_row_stride = of.q.row, given.q_head_stride = of.q.head;
    given.k_batch_stride = of.k.batch, given.k_row_stride = of.k.row, given.k_head_stride = of.k.head;
    given.v_batch_stride = of.v.batch, given.v_row_stride = of.v.row, given.v_head_stride = of.v.head;
    given.o_batch_stride = of.o.batch, given.o_row_stride = of.o.row, given.o_head_stride = of.o.head;
    given.v_dim_stride = 1;

    given.b = given.b_k = of.batch;
    given.h = of.heads;
    given.h_k = of.heads_kv;
    given.seqlen_q = of.seqlen_q;
    given.seqlen_k = of.seqlen_k;
    given.seqlen_q_rounded = rounded(of.seqlen_q, 128);
    given.seqlen_k_rounded = rounded(of.seqlen_k, 128);
    given.total_q = of.total_q;
    given.total_k = of.total_k;
    given.d = given.d_rounded = given.dv = given.dv_rounded = of.dim;
    given.page_size = 1;
    given.num_splits = 1;

    given.scale_softmax = of.scale;
    given.p_dropout = given.rp_dropout = 1.0f;  // the share of elements that is kept: all
    given.p_dropout_in_uint8_t = 255;

    // One query sees every key in any case, and is then the faster, unmasked kernel's.
    given.is_causal = of.causal != 0 && of.seqlen_q > 1;
    given.window_size_left = of.seqlen_k - 1;
    given.window_size_right = given.is_causal ? 0 : of.seqlen_q - 1;
    given.head_swizzle = given.is_causal;
    given.varlen_sort_batches = true;
    return given;
}

template <class Element, int D>
void launch(Flash_fwd_params& given, cudaStream_t stream) {
    constexpr bool split = false, paged = false, softcap = false, pack_heads = false;
    run_mha_fwd_<90, Element, D, D, split, paged, softcap, pack_heads>(given, stream);
}

cudaError_t forward_whole(const fa3_attention& of, Flash_fwd_params& given, cudaStream_t stream) {
    // The causal kernels' blocks take tiles from a counter, which starts at zero.
    if (given.is_causal) {
        const cudaError_t status = cudaMemsetAsync(of.workspace, 0, sizeof(int), stream);
        if (status != cudaSuccess) return status;
        given.tile_count_semaphore = of.workspace;
    }
    if (!of.e4m3 && of.dim == 64) {
        launch<cutlass::bfloat16_t, 64>(given, stream);
    } else if (!of.e4m3 && of.dim == 128) {
        launch<cutlass::bfloat16_t, 128>(given, stream);
    } else if (of.e4m3 && of.dim == 64) {
        launch<cutlass::float_e4m3_t, 64>(given, stream);
    } else if (of.e4m3 && of.dim == 128) {
        launch<cutlass::float_e4m3_t, 128>(given, stream);
    } else if (of.e4m3 && of.dim == 256) {
        launch<cutlass::float_e4m3_t, 256>(given, stream);
    } else {
        return cudaErrorInvalidValue;
    }
    return cudaGetLastError();
}

cudaError_t forward_packed(const fa3_attention& of, Flash_fwd_params& given, cudaStream_t stream) {
    given.cu_seqlens_q = const_cast<int*>(of.starts_q);
    given.cu_seqlens_k = const_cast<int*>(of.starts_k);
    given.pack_gqa = of.pack_heads != 0;
    // A launch before the kernel's sorts the sequences by length and writes these, with the counter of tiles.
    const int rounded_batch = rounded(of.batch, 4);
    given.num_splits_dynamic_ptr = of.workspace;
    given.num_m_blocks_ptr = of.workspace + rounded_batch;
    given.varlen_batch_idx_ptr = of.workspace + 2 * rounded_batch;
    if (given.is_causal) given.num_nheads_in_l2_ptr = of.workspace + 3 * rounded_batch;
    given.tile_count_semaphore = of.workspace + 4 * rounded_batch;
    constexpr int most_of_one_block = 992;
    given.prepare_varlen_pdl = of.batch <= most_of_one_block;
    if (of.dim == 64 && !of.pack_heads) {
        run_packed<64, false>(given, stream);
    } else if (of.dim == 128 && !of.pack_heads) {
        run_packed<128, false>(given, stream);
    } else if (of.dim == 128) {
        run_packed<128, true>(given, stream);
    } else {
        return cudaErrorInvalidValue;
    }
    return cudaGetLastError();
}

// The ints that a deterministic sum over heads counts turns with, and the sums that it and others add to.
cudaError_t cleared(const fa3_gradients& of, Flash_bwd_params& given, cudaStream_t stream) {
    const fa3_attention& by = of.forward;
    const int64_t heads = static_cast<int64_t>(by.batch) * by.heads_kv;
    const size_t bytes = heads * given.seqlen_k_rounded * by.dim * sizeof(float);
    given.dk_accum_ptr = of.sum_dk;
    given.dv_accum_ptr = of.sum_dv;
    cudaError_t status = cudaMemsetAsync(of.sum_dk, 0, bytes, stream);
    if (status == cudaSuccess) status = cudaMemsetAsync(of.sum_dv, 0, bytes, stream);
    if (status != cudaSuccess || !given.deterministic) return status;
    const int64_t blocks = heads * (given.seqlen_k_rounded / 128);
    given.dk_semaphore = of.turns + static_cast<int64_t>(by.batch) * by.heads * (by.seqlen_q / 64 + 1);
    given.dv_semaphore = given.dk_semaphore + blocks;
    return cudaMemsetAsync(given.dk_semaphore, 0, 2 * blocks * sizeof(int), stream);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int fa3_forward(const fa3_attention* of, cudaStream_t stream) {
    if (!is_valid(*of)) return cudaErrorInvalidValue;
    auto given = filled<Flash_fwd_params>(*of);
    if (of->e4m3) {
        given.q_descale_ptr = const_cast<float*>(of->factor_q);
        given.k_descale_ptr = const_cast<float*>(of->factor_k);
        given.v_descale_ptr = const_cast<float*>(of->factor_v);
        given.q_descale_batch_stride = given.k_descale_batch_stride = given.v_descale_batch_stride = of->heads_kv;
        given.q_descale_head_stride = given.k_descale_head_stride = given.v_descale_head_stride = 1;
    }
    return of->starts_q ? forward_packed(*of, given, stream) : forward_whole(*of, given, stream);
}

extern "C" __attribute__((visibility("default"))) int fa3_backward(const fa3_gradients* of, cudaStream_t stream) {
    const fa3_attention& by = of->forward;
    if (!is_valid(by) || by.e4m3 || by.starts_q || (by.dim != 64 && by.dim != 128)) return cudaErrorInvalidValue;
    auto given = filled<Flash_bwd_params>(by);
    given.is_causal = by.causal != 0;
    given.window_size_right = given.is_causal ? 0 : by.seqlen_q - 1;
    given.seqlen_q_rounded = rounded(by.seqlen_q, by.dim == 64 ? 128 : given.is_causal ? 64 : 80);
    given.deterministic = of->deterministic != 0;

    given.do_ptr = of->d_o.data;
    given.dq_ptr = of->d_q.data;
    given.dk_ptr = of->d_k.data;
    given.dv_ptr = of->d_v.data;
    given.do_batch_stride = of->d_o.batch, given.do_row_stride = of->d_o.row, given.do_head_stride = of->d_o.head;
    given.dq_batch_stride = of->d_q.batch, given.dq_row_stride = of->d_q.row, given.dq_head_stride = of->d_q.head;
    given.dk_batch_stride = of->d_k.batch, given.dk_row_stride = of->d_k.row, given.dk_head_stride = of->d_k.head;
    given.dv_batch_stride = of->d_v.batch, given.dv_row_stride = of->d_v.row, given.dv_head_stride = of->d_v.head;
    given.dsoftmax_sum = of->row_sums;
    given.softmax_lse_log2_ptr = of->lse_log2;
    given.dq_accum_ptr = of->sum_dq;
    given.dq_semaphore = of->turns;

    if (by.heads != by.heads_kv) {
        const cudaError_t status = cleared(*of, given, stream);
        if (status != cudaSuccess) return status;
    }
    if (by.dim == 64) {
        run_mha_bwd_<90, cutlass::bfloat16_t, 64, false>(given, stream);
    } else {
        run_mha_bwd_<90, cutlass::bfloat16_t, 128, false>(given, stream);
    }
    return cudaGetLastError();
}
