"""`received_order`: rows that several ranks have sent to their experts, ordered by expert on the device."""

from __future__ import annotations

from typing import Any, NamedTuple

from argus.ops import lists_on_cpu
from argus.ops.call_path import refuser, torch
from argus.ops.expert_order import MOST_ROWS, check_height
from argus.ops.expert_order_text import EXPERTS, THREADS
from argus.ops.grouped_tiles import count_of, int32_of
from argus.ops.operand_checks import Asked, check_operands
from argus.ops.operands import Tensor, copy_aligned
from argus.ops.received_order_text import SYMBOL, text
from argus.ops.targets import target_of
from argus.ops.text_kernels import TextKernel
from argus.ops.traced import traceable

_KERNEL = TextKernel(SYMBOL, text, THREADS, early=True)
_AXES, _BLOCKS = 2, 128


class ReceivedOrder(NamedTuple):
    """The order of M received rows by expert, stable; all in int32, contiguous, aligned to 16 bytes.

    offsets: (experts + 1,): expert e has the rows offsets[e] to offsets[e + 1] - 1 of the order; the last is the number
    of rows that were received. order: (M,), the received row of each. inverse: (M,), the place of each received row, by
    which results go back in the order in which they came. Rows beyond those received stay where they are. tile_starts,
    tile_experts: as of `ExpertOrder`.
    """

    offsets: Any
    order: Any
    inverse: Any
    tile_starts: Any = None
    tile_experts: Any = None


@traceable
def received_order(counts: Tensor, rows: int, *, height: int | None = None) -> ReceivedOrder:
    """Order rows by expert that come from several ranks, those of each rank in the order of their experts.

    counts: (ranks, experts) in int32, the rows from each rank for each of this rank's experts, as `ExpertOrder.by_rank`
    gives them on the rank that sends; at most 512 in all. rows: as many as there is room for. height: the most rows of
    a tile, to list tiles too.

    One launch, which does not wait for the GPU, runs on the current stream and may be captured in a CUDA graph. No
    proof covers it, as `expert_order`. Negative counts are none, and rows beyond `rows` are left out.

    Raises:
        ArgusError: E401 for operands that are not such, E303 without a compiler, E406 to E409 for errors on the GPU.
    """
    _check(counts, rows)
    check_height(_refuse, height)
    given, index, used = copy_aligned(counts), counts.device.index, torch()
    ranks, experts = given.shape
    if not counts.is_cuda:
        return _on_cpu(given, rows, height)
    tiles = count_of(rows, experts, height) if height else 0
    with used.cuda.device(index):
        made = [used.empty(count, dtype=used.int32, device=given.device) for count in (experts + 1, rows, rows)]
        lengths = (tiles + 1, tiles) if height else ()
        lists = [used.empty(count, dtype=used.int32, device=given.device) for count in lengths]
        places = [each.data_ptr() for each in (given, *made, *lists)] + [0] * (2 - len(lists))
        blocks = max(1, min(_BLOCKS, -(-rows // THREADS)))
        stream = used.cuda.current_stream(index).cuda_stream
        sizes = (rows, ranks, experts, blocks, tiles, height or 0)
        _KERNEL.launch(target_of(given), index, stream, blocks, *places, *sizes)
    return ReceivedOrder(*made, *lists)


def _on_cpu(counts: Any, rows: int, height: int | None) -> ReceivedOrder:  # noqa: ANN401 reason: torch's
    found = lists_on_cpu.received_order(counts.numpy(), rows)
    experts = counts.shape[1]
    tiles = () if height is None else lists_on_cpu.tiles(found[0], count_of(rows, experts, height), height)
    return ReceivedOrder(*(int32_of(each) for each in (*found, *tiles)))


def _check(counts: Any, rows: int) -> None:  # noqa: ANN401 reason: a user's
    """Raises ArgusError (E401) for what are not numbers of rows on a GPU."""
    check_operands(_refuse, {"counts": (counts, Asked(("torch.int32",), what=""))}, lacks="this order lacks")
    if len(counts.shape) != _AXES or not 1 <= counts.shape[0] * counts.shape[1] <= EXPERTS:
        message = f"`counts` is {tuple(counts.shape)}, expected (ranks, experts) with 1 to {EXPERTS} numbers"
        _refuse(message, "pass the rows from each rank for each expert")
    if not 0 <= rows < MOST_ROWS:
        _refuse(f"`rows` is {rows}, expected 0 to 2^28 - 1", "pass the rows that there is room for")


_refuse = refuser("received_order")
