// The forward kernel of FlashAttention-3 behind one C function, so that it can be called on the tensors of any library.
//
// It starts the kernel that FlashAttention's own entry, mha_fwd, starts by default for whole tensors: bf16, one head
// dimension for q, k and v, no split of the keys. Compiled, with the kernel, by flash_attention_3.py.

#include <cstdint>

#include <cuda_runtime.h>
#include <cutlass/numeric_types.h>

#include "flash.h"

namespace {

template <int D>
void launch(Flash_fwd_params& given, cudaStream_t stream) {
    constexpr bool split = false, paged = false, softcap = false, pack_heads = false;
    run_mha_fwd_<90, cutlass::bfloat16_t, D, D, split, paged, softcap, pack_heads>(given, stream);
}

}  // namespace

// o = softmax(scale * q k^T) v for each head, and softmax_lse: the logarithms, to base e, of the sums of exponentials.
//
// q and o: [batch, heads, seqlen_q, dim]; k and v: [batch, heads_kv, seqlen_k, dim]; softmax_lse: float, contiguous
// [batch, heads, seqlen_q]. Strides count elements, the last dimension's is 1; q, k, v and o are moved by TMA, so their
// addresses and strides must be multiples of 16 bytes. Causal: the last query sees all keys, the one before it all but
// the last, and so on. semaphore: one int on the device, for causal only, which no other launch may use meanwhile.
//
// Returns a cudaError_t. FlashAttention itself ends the process if it cannot launch.
extern "C" __attribute__((visibility("default"))) int fa3_forward(
    const void* q, const void* k, const void* v, void* o, float* softmax_lse, int* semaphore,
    int batch, int heads, int heads_kv, int seqlen_q, int seqlen_k, int dim,
    int64_t q_batch, int64_t q_row, int64_t q_head,
    int64_t k_batch, int64_t k_row, int64_t k_head,
    int64_t v_batch, int64_t v_row, int64_t v_head,
    int64_t o_batch, int64_t o_row, int64_t o_head,
    float scale, int causal, int sm_count, cudaStream_t stream) {
    if (batch < 1 || heads < 1 || heads_kv < 1 || seqlen_q < 1 || seqlen_k < 1) return cudaErrorInvalidValue;
    if (heads % heads_kv != 0 || (dim != 64 && dim != 128)) return cudaErrorInvalidValue;

    // What is not named below stays zero: lengths per sequence, pages, a cache to append to, rotary embeddings, splits.
    Flash_fwd_params given{};
    given.is_bf16 = true;
    given.arch = 90;
    given.num_sm = sm_count;

    given.q_ptr = const_cast<void*>(q);
    given.k_ptr = const_cast<void*>(k);
    given.v_ptr = const_cast<void*>(v);
    given.o_ptr = o;
    given.softmax_lse_ptr = softmax_lse;
    given.q_batch_stride = q_batch, given.q_row_stride = q_row, given.q_head_stride = q_head;
    given.k_batch_stride = k_batch, given.k_row_stride = k_row, given.k_head_stride = k_head;
    given.v_batch_stride = v_batch, given.v_row_stride = v_row, given.v_head_stride = v_head;
    given.o_batch_stride = o_batch, given.o_row_stride = o_row, given.o_head_stride = o_head;
    given.v_dim_stride = 1;

    given.b = given.b_k = batch;
    given.h = heads;
    given.h_k = heads_kv;
    given.seqlen_q = seqlen_q;
    given.seqlen_k = seqlen_k;
    given.seqlen_q_rounded = (seqlen_q + 127) / 128 * 128;
    given.seqlen_k_rounded = (seqlen_k + 127) / 128 * 128;
    given.total_q = batch * seqlen_q;
    given.total_k = batch * seqlen_k;
    given.d = given.d_rounded = given.dv = given.dv_rounded = dim;
    given.page_size = 1;
    given.num_splits = 1;

    given.scale_softmax = scale;
    given.p_dropout = given.rp_dropout = 1.0f;  // the share of elements that is kept: all
    given.p_dropout_in_uint8_t = 255;

    // One query sees every key in any case, and is then the faster, unmasked kernel's.
    given.is_causal = causal != 0 && seqlen_q > 1;
    given.window_size_left = seqlen_k - 1;
    given.window_size_right = given.is_causal ? 0 : seqlen_q - 1;

    // The causal kernel's blocks take tiles from a counter, which starts at zero.
    given.head_swizzle = given.is_causal;
    given.varlen_sort_batches = true;
    if (given.is_causal) {
        const cudaError_t status = cudaMemsetAsync(semaphore, 0, sizeof(int), stream);
        if (status != cudaSuccess) return status;
        given.tile_count_semaphore = semaphore;
    }

    if (dim == 64) {
        launch<64>(given, stream);
    } else {
        launch<128>(given, stream);
    }
    return cudaGetLastError();
}
