"""Device functions of gfx942 that read registers of other lanes of a wave.

DPP moves within rows of 16 lanes at the rate of an addition; ds_swizzle and ds_bpermute go through the LDS crossbar
[AMD CDNA3 ISA, data-parallel processing; LLVM AMDGPU usage].
"""

from __future__ import annotations

from argus.core.ir import Copy, Fold, Kernel, walk
from argus.emit.fold_text import uses_lanes
from argus.emit.shuffles import is_shuffle

LANES = """\
// Values of other lanes of the wave, all of which execute the call. A lane number counts modulo 64.
template <class T> HELPER int lane_word(T x) {
    static_assert(sizeof(T) <= 4);
    int word = 0;
    __builtin_memcpy(&word, &x, sizeof(T));
    return word;
}
template <class T> HELPER T of_lane_word(int word) {
    T x;
    __builtin_memcpy(&x, &word, sizeof(T));
    return x;
}
// DPP controls: permutations of four lanes, lane ^ 7, lane ^ 15, and rotation by 8 of 16 lanes.
template <int CONTROL> HELPER int lane_dpp(int word) {
    return __builtin_amdgcn_update_dpp(0, word, CONTROL, 0xF, 0xF, false);
}
template <int MASK, class T> HELPER T lane_xor(T x) {
    const int word = lane_word(x);
    if constexpr (MASK == 1) return of_lane_word<T>(lane_dpp<0xB1>(word));
    else if constexpr (MASK == 2) return of_lane_word<T>(lane_dpp<0x4E>(word));
    else if constexpr (MASK == 3) return of_lane_word<T>(lane_dpp<0x1B>(word));
    else if constexpr (MASK == 7) return of_lane_word<T>(lane_dpp<0x141>(word));
    else if constexpr (MASK == 8) return of_lane_word<T>(lane_dpp<0x128>(word));
    else if constexpr (MASK == 15) return of_lane_word<T>(lane_dpp<0x140>(word));
    else if constexpr (MASK < 32) return of_lane_word<T>(__builtin_amdgcn_ds_swizzle(word, MASK << 10 | 31));
    else return of_lane_word<T>(__builtin_amdgcn_ds_bpermute(4 * ((int)__builtin_amdgcn_workitem_id_x() ^ MASK), word));
}
template <class T> HELPER T lane_from(T x, int lane) {
    return of_lane_word<T>(__builtin_amdgcn_ds_bpermute(4 * lane, lane_word(x)));
}
"""


def reads_lanes(kernel: Kernel) -> bool:
    """Whether a fold or a shuffle of the kernel reads other lanes."""
    unit = kernel.target.unit
    return any(
        (isinstance(stmt, Fold) and uses_lanes(stmt, unit)) or (isinstance(stmt, Copy) and is_shuffle(stmt))
        for stmt in walk(kernel.body)
    )
