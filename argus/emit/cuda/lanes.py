"""Device functions of sm_90a that read registers of other lanes of a warp."""

from __future__ import annotations

from collections.abc import Iterator

from argus.core.ir import Copy, Fold, Kernel, walk
from argus.emit.fold_text import uses_lanes
from argus.emit.shuffles import is_shuffle

LANES = """\
// Values of other lanes of the warp, all of which execute the call. A lane number counts modulo 32.
template <class T> static __device__ __forceinline__ u32 lane_word(T x) {
    static_assert(sizeof(T) <= 4);
    u32 word = 0;
    memcpy(&word, &x, sizeof(T));
    return word;
}
template <class T> static __device__ __forceinline__ T of_lane_word(u32 word) {
    T x;
    memcpy(&x, &word, sizeof(T));
    return x;
}
template <int MASK, class T> static __device__ __forceinline__ T lane_xor(T x) {
    return of_lane_word<T>(__shfl_xor_sync(~0u, lane_word(x), MASK));
}
template <class T> static __device__ __forceinline__ T lane_from(T x, int lane) {
    return of_lane_word<T>(__shfl_sync(~0u, lane_word(x), lane));
}
"""


def helpers(kernel: Kernel) -> Iterator[str]:
    """The device functions, if a fold or a shuffle of the kernel reads other lanes."""
    unit = kernel.target.unit
    if any(
        (isinstance(stmt, Fold) and uses_lanes(stmt, unit)) or (isinstance(stmt, Copy) and is_shuffle(stmt))
        for stmt in walk(kernel.body)
    ):
        yield LANES
