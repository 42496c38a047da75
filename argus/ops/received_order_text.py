"""The text of the kernel that orders rows received from several ranks by expert."""

from __future__ import annotations

from argus.ops.expert_order_text import EXPERTS, PRELUDES, SUMS, THREADS

SYMBOL = "order_received"

_BODY = r"""
// counts[rank][expert]: rows received from each rank, in that order; each block finds where all of them begin and go.
// Wrong numbers give a wrong order, but no access beyond the tensors.
KERNEL order_received(
    const int* counts, int* starts, int* order, int* inverse, int* tile_starts, int* tile_experts, int rows, int ranks,
    int experts, int blocks, int tiles, int height
) {
    __shared__ int begins[EXPERTS], goes[EXPERTS], firsts[EXPERTS], ends[EXPERTS], sums[THREADS / WARP];
    const int own = own_thread(), parts = ranks * experts;
    await_launch_before();
    const int number = own < parts ? min(rows, counts[own] < 0 ? 0 : counts[own]) : 0;
    const int end = sum_up_to(number, sums, rows);
    if (own < parts) begins[own] = end - number < 0 ? 0 : end - number;
    const int place = own % ranks * experts + own / ranks;
    const int turned = own < parts ? min(rows, counts[place] < 0 ? 0 : counts[place]) : 0;
    const int turned_end = sum_up_to(turned, sums, rows);
    if (own < parts) goes[place] = turned_end - turned < 0 ? 0 : turned_end - turned;
    if (own < parts && own % ranks == 0) firsts[own / ranks] = turned_end - turned < 0 ? 0 : turned_end - turned;
    if (own == parts - 1) sums[0] = turned_end;
    meet();
    const int all = sums[0];
    meet();
    const int first = own < experts ? firsts[own] : 0;
    const int held = own < experts ? (own + 1 < experts ? firsts[own + 1] : all) - first : 0;
    const int end_tile = height ? sum_up_to((held + height - 1) / height, sums, tiles) : 0;
    if (own < experts) {
        ends[own] = end_tile;
        if (own_block() == 0) starts[own] = first;
    }
    if (own_block() == 0 && own == 0) starts[experts] = all;
    meet();
    for (int row = own_block() * THREADS + own; row < rows; row += blocks * THREADS) {
        int low = 0, high = parts - 1;
        while (low < high) {  // the last part that begins at the row or before
            const int middle = (low + high + 1) / 2;
            if (begins[middle] <= row) low = middle; else high = middle - 1;
        }
        const int to = row < all ? goes[low] + (row - begins[low]) : row;
        inverse[row] = to;
        if (to >= 0 && to < rows) order[to] = row;
    }
    list_tiles(tile_starts, tile_experts, firsts, ends, experts, tiles, height, all, blocks);
}
"""


def text(target: str) -> str:
    """The kernel for a target."""
    return f"#define THREADS {THREADS}\n#define EXPERTS {EXPERTS}{PRELUDES[target]}{SUMS}{_BODY}"
