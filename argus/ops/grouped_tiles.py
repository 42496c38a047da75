"""The tiles of grouped products: which rows each has, and of which expert, computed on the device by one small kernel.

The product's launch checks them against the offsets, so that a fault here is reported and never computed with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argus.emit.hip.prelude import PRELUDE
from argus.ops import lists_on_cpu
from argus.ops.call_path import torch
from argus.ops.targets import target_of
from argus.ops.text_kernels import TextKernel

_BODY = """
// One block. For each 1024 experts: a scan of their numbers of tiles; each tile then finds its expert by halving.
// Wrong offsets give wrong tiles, but no access beyond the tensors.
extern "C" __global__ void BLOCK
grouped_tiles(const int* starts, int* tile_starts, int* tile_experts, int experts, int tiles, int height) {
    __shared__ long long ends[1024];
    const int own = THREAD;
    long long before = 0;
    for (int first = 0; first < experts; first += 1024) {
        const int count = experts - first < 1024 ? experts - first : 1024;
        long long number = 0;
        if (own < count) {
            const long long rows = (long long)starts[first + own + 1] - starts[first + own];
            number = rows <= 0 ? 0 : (rows + height - 1) / height;
            number = number < tiles ? number : tiles;
        }
        ends[own] = number;
        MEET();
        for (int step = 1; step < 1024; step *= 2) {
            const long long added = own >= step ? ends[own - step] : 0;
            MEET();
            ends[own] += added;
            MEET();
        }
        const long long all = ends[count - 1];
        for (long long tile = own; tile < all && before + tile < tiles; tile += 1024) {
            int low = 0, high = count - 1;
            while (low < high) {
                const int middle = (low + high) / 2;
                if (ends[middle] > tile) high = middle; else low = middle + 1;
            }
            const long long inside = tile - (low ? ends[low - 1] : 0);
            tile_starts[before + tile] = (int)(starts[first + low] + inside * height);
            tile_experts[before + tile] = first + low;
        }
        before += all;
        MEET();
    }
    for (long long tile = before + own; tile < tiles; tile += 1024) {
        tile_starts[tile] = starts[experts];
        tile_experts[tile] = experts - 1;
    }
    if (own == 0) tile_starts[tiles] = starts[experts];
}
"""
_CUDA = """\
#define BLOCK __launch_bounds__(1024)
#define THREAD ((int)threadIdx.x)
#define MEET __syncthreads
"""
_HIP = f"""\
{PRELUDE}
#define BLOCK THREADS(1024, 4)
#define THREAD ((int)__builtin_amdgcn_workitem_id_x())
#define MEET meet
"""
_TEXTS: Mapping[str, str] = {"sm_90a": _CUDA + _BODY, "gfx942": _HIP + _BODY}
_LIST = TextKernel("grouped_tiles", _TEXTS.__getitem__, 1024)


def count_of(rows: int, experts: int, height: int) -> int:
    """How many tiles there are at most: as many as the rows fill, and a part of one for each expert, or one a row."""
    return min(max(rows, 1), rows // height + experts)


def int32_of(array: Any) -> Any:  # noqa: ANN401 reason: torch's
    """A list of integers as a tensor of the CPU, whose memory is aligned."""
    made = torch().empty(array.shape, dtype=torch().int32)
    made.numpy()[...] = array
    return made


def tiles_of(starts: Any, rows: int, height: int) -> tuple[Any, Any]:  # noqa: ANN401 reason: torch's
    """The first row of each tile, with the end of the last one, and the expert of each; both are int32.

    starts: the first row of each expert, with the end of the last one's, at least two. height: the most rows of a tile.
    An expert's last tile may have fewer; tiles beyond those of the last expert have none. Runs on the current stream.
    Raises ArgusError: E303 without a compiler, E406 to E409 for errors on the GPU.
    """
    experts, index = starts.shape[0] - 1, starts.device.index
    count, used = count_of(rows, experts, height), torch()
    if not starts.is_cuda:
        owned, owner = lists_on_cpu.tiles(starts.numpy(), count, height)
        return int32_of(owned), int32_of(owner)
    with used.cuda.device(index):
        firsts, owners = (used.empty(n, dtype=used.int32, device=starts.device) for n in (count + 1, count))
        places = (each.data_ptr() for each in (starts, firsts, owners))
        stream = used.cuda.current_stream(index).cuda_stream
        _LIST.launch(target_of(starts), index, stream, 1, *places, experts, count, height)
    return firsts, owners
