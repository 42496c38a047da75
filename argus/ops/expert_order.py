"""`expert_order`: the assignments of tokens to experts, ordered by expert on the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from attrs import frozen

from argus.ops import lists_on_cpu
from argus.ops.call_path import refuser, torch
from argus.ops.expert_order_text import COUNT, EXPERTS, PLACE, THREADS, text
from argus.ops.grouped_tiles import count_of, int32_of
from argus.ops.operand_checks import Asked, check_operands
from argus.ops.operands import Tensor, copy_aligned
from argus.ops.targets import target_of
from argus.ops.text_kernels import TextKernel
from argus.ops.traced import traceable

_BITS = {"torch.int32": 32, "torch.int64": 64}
_COUNT = {bits: TextKernel(f"{COUNT}_{bits}", text, THREADS, early=True) for bits in _BITS.values()}
_PLACE = {bits: TextKernel(f"{PLACE}_{bits}", text, THREADS, early=True) for bits in _BITS.values()}
MOST_ROWS, _OWN_BITS = 1 << 28, 32
_AXES = 2


@frozen
class Division:
    """How assignments are divided among blocks. alone: how many one block orders alone. least: the fewest of a block
    else. blocks: the most blocks.
    """

    alone: int = 1024
    least: int = 1024
    blocks: int = 64

    def of(self, pairs: int) -> tuple[int, int]:
        """Blocks, and the assignments of each: a multiple of the threads."""
        chunk = pairs if pairs <= self.alone else max(self.least, -(-pairs // self.blocks))
        chunk = max(1, -(-chunk // THREADS)) * THREADS
        return max(1, -(-pairs // chunk)), chunk


class ExpertOrder(NamedTuple):
    """M = tokens * k assignments in the order of their experts; all in int32, contiguous, aligned to 16 bytes.

    Assignment `token * k + slot` is that of `topk_ids[token, slot]`. Within an expert they keep their order.

    ids: (tokens, k), the given ids. offsets: (experts + 1,): expert e has the rows offsets[e] to offsets[e + 1] - 1.
    order: (M,), the assignment of each row. tokens: (M,), the token of each row, order // k. inverse: (tokens, k), the
    row of each assignment. tile_starts, tile_experts: the first row and the expert of each tile of at most `height`
    rows, where it was given: M // height + experts of them, or M if that is less, and the end of the last; tiles beyond
    have no rows.
    """

    ids: Any
    offsets: Any
    order: Any
    tokens: Any
    inverse: Any
    tile_starts: Any = None
    tile_experts: Any = None

    @property
    def counts(self) -> Any:  # noqa: ANN401 reason: torch's
        """(experts,): the rows of each expert."""
        return self.offsets.diff()

    def by_rank(self, ranks: int) -> Any:  # noqa: ANN401 reason: torch's
        """(ranks, experts / ranks): the rows of each expert, where each rank has as many experts, one after another.

        These are what ranks exchange before their rows: row g goes to rank g, whose `received_order` takes it. The sum
        of row g is the number of rows that rank g is sent, in the order of this rank's rows.
        """
        counts = self.counts
        if ranks < 1 or counts.shape[0] % ranks:
            _refuse(f"{ranks} ranks of {counts.shape[0]} experts", "pass a number of ranks with equally many experts")
        return counts.reshape(ranks, counts.shape[0] // ranks)


@traceable
def expert_order(topk_ids: Tensor, experts: int, *, height: int | None = None) -> ExpertOrder:
    """Order the assignments of tokens to experts by expert: a counting sort in one launch, or two of many assignments.

    topk_ids: (tokens, k), int32 or int64, from 0 to experts - 1; at most 512 experts, and fewer than 2^28 assignments.
    height: the most rows of a tile, to list tiles too.

    It does not wait for the GPU, runs on the current stream, may be captured in a CUDA graph, and has the same result
    each time. No proof covers it: kernels that use the result check on the GPU what they rely on, such as
    `order[inverse[t, j]] == t * k + j` and `offsets[ids[t, j]] <= inverse[t, j] < offsets[ids[t, j] + 1]`. An id of no
    expert is placed as the nearest one; `ids` keeps it, so that such a check fails.

    Raises:
        ArgusError: E401 for operands that are not such, E303 without a compiler, E406 to E409 for errors on the GPU.
    """
    _check(topk_ids, experts, height)
    return ordered(topk_ids, experts, height, Division())


def ordered(topk_ids: Tensor, experts: int, height: int | None, division: Division) -> ExpertOrder:
    """The order of ids that were checked, by a division into blocks."""
    if not topk_ids.is_cuda:
        return _on_cpu(topk_ids, experts, height)
    given, index, used = copy_aligned(topk_ids), topk_ids.device.index, torch()
    tokens, choices = given.shape
    pairs, bits = tokens * choices, _BITS[str(given.dtype)]
    tiles = count_of(pairs, experts, height) if height else 0
    blocks, chunk = division.of(pairs)
    with used.cuda.device(index):

        def room(*shape: int) -> Any:  # noqa: ANN401 reason: torch's
            return used.empty(shape, dtype=used.int32, device=given.device)

        ids: Any = given if bits == _OWN_BITS else room(tokens, choices)
        made = (room(experts + 1), room(pairs), room(pairs), room(tokens, choices))
        lists = (room(tiles + 1), room(tiles)) if height else ()
        target, stream = target_of(given), used.cuda.current_stream(index).cuda_stream
        counts = 0
        if blocks > 1:
            counted = room(blocks, experts)
            counts = counted.data_ptr()
            of_block = (given.data_ptr(), counts, pairs, experts, chunk)
            _COUNT[bits].launch(target, index, stream, blocks, *of_block)
        copied = 0 if ids is given else ids.data_ptr()
        results = [each.data_ptr() for each in (*made, *lists)] + [0] * (2 - len(lists))
        sizes = (pairs, choices, experts, (experts - 1).bit_length(), chunk, blocks, tiles, height or 0)
        _PLACE[bits].launch(target, index, stream, blocks, given.data_ptr(), counts, copied, *results, *sizes)
    return ExpertOrder(ids, *made, *lists)


def _on_cpu(topk_ids: Any, experts: int, height: int | None) -> ExpertOrder:  # noqa: ANN401 reason: torch's
    ids = topk_ids.contiguous().int()
    pairs = topk_ids.numel()
    offsets, order, tokens, inverse = lists_on_cpu.expert_order(ids.numpy(), experts, ids.shape[1])
    found = (offsets, order, tokens, inverse.reshape(ids.shape))
    tiles = () if height is None else lists_on_cpu.tiles(offsets, count_of(pairs, experts, height), height)
    return ExpertOrder(ids, *(int32_of(each) for each in (*found, *tiles)))


def _check(topk_ids: Any, experts: int, height: int | None) -> None:  # noqa: ANN401 reason: a user's
    """Raises ArgusError (E401) for what are not ids of experts on a GPU."""
    check_operands(_refuse, {"topk_ids": (topk_ids, Asked(_BITS, what=""))}, lacks="this order lacks")
    if len(topk_ids.shape) != _AXES or topk_ids.shape[1] < 1:
        _refuse(f"`topk_ids` is {tuple(topk_ids.shape)}, expected (tokens, k)", "pass the experts of each token")
    if not 1 <= experts <= EXPERTS:
        _refuse(f"found {experts} experts, expected 1 to {EXPERTS}", "split the experts into groups")
    if topk_ids.shape[0] * topk_ids.shape[1] >= MOST_ROWS:
        _refuse(f"`topk_ids` has {topk_ids.shape[0]} tokens, too many for 32-bit rows", "split the tokens")
    check_height(_refuse, height)


def check_height(refuse: Callable[[str, str], NoReturn], height: int | None) -> None:
    """Refuses what is no number of rows of a tile."""
    if height is not None and not 1 <= height < MOST_ROWS:
        refuse(f"`height` is {height}, expected at least 1", "pass the rows of a tile")


_refuse = refuser("expert_order")
