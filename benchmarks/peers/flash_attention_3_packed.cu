// FlashAttention-3's forward kernels of packed sequences in bf16 for one head dimension, full and causal, without those
// of other element types, splits and pages that FlashAttention's own instances of that dimension would compile, too.
//
// Compiled by flash_attention_3.py once for each HEAD_DIM and PACK_HEADS (tiles hold several heads of q).

#include <cutlass/numeric_types.h>

#include "flash_fwd_launch_template.h"

template <int D, bool PackHeads>
void run_packed(Flash_fwd_params& given, cudaStream_t stream) {
    constexpr int clusters = 1;
    constexpr bool local = false, softcap = false, varlen = true, paged = false, append = false, second_q = false;
    constexpr bool split = false, columns = false;
    using Element = cutlass::bfloat16_t;
    CAUSAL_LOCAL_SWITCH(given.is_causal, false, causal, unused, [&] {
        run_flash_fwd<90, D, D, clusters, Element, Element, causal, local, softcap, varlen, paged, append, second_q,
                      PackHeads, split, columns>(given, stream);
    });
}

template void run_packed<HEAD_DIM, PACK_HEADS>(Flash_fwd_params&, cudaStream_t);
