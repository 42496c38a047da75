"""Values for products of 8-bit elements: transposed, as the matrix unit reads both factors along the summed index.

The weights of a block come from one product in the layout of its results, and go into the next one in the layout of its
first factor. A thread holds the same 4 of 16 keys in both, in another order: so the values' keys are in that order.
"""

from __future__ import annotations

from attrs import frozen

from argus.language import (
    TV,
    Int,
    Layout,
    Tensor,
    Value,
    assert_equals,
    assume,
    block_id,
    ceil_div,
    copy,
    elements,
    load,
    sm_90a,
    tag,
    where,
)

KEYS = 16
"""Keys that exchange places with each other."""
_RUN = 4
"""Elements of a row that a thread reads together."""
_LANES = 16
"""Threads of a warp beside each other in a row."""


def key_at(place: Int) -> Int:
    """The key at a place of the values: at 4 i + 2 j + k of 16 places, with j and k below 2, key 8 j + 2 i + k."""
    inside = place % KEYS
    return place // KEYS * KEYS + inside // 2 % 2 * 8 + inside // 4 * 2 + inside % 2


@frozen
class TurnedValues:
    """threads: of a block; each turns 4 elements of 16 keys."""

    threads: int = 256
    target = sm_90a

    def keys(self, width: int) -> int:
        """Keys of a block, of so many elements each."""
        return self.threads * KEYS * _RUN // width


def turn_values(V: Tensor, W: Tensor, cfg: TurnedValues) -> None:
    """W[b, g, e, p] = V[b, g, key_at(p), e]; 0 where there is no such key."""
    (batch, groups, keys, depth), places = V.shape, W.shape[3]
    width = int(depth)
    size = cfg.keys(width)
    count = ceil_div(places, size)
    assume(keys >= 1, keys < 1 << 28, places >= keys, places < 1 << 29, places % KEYS == 0)
    assume(batch * groups < 1 << 24, batch * groups * count < 1 << 24, batch < 1 << 16, groups < 1 << 16)  # of the grid
    tag(V, lambda b, g, t, e: dict(b=b, g=g, t=t, e=e))
    n, g, b = block_id((count, groups, batch))
    # A warp reads 64 elements of a row, and writes 32 keys of an element: whole sectors of 32 bytes.
    threads = Layout(
        (_LANES, 2, width // (_RUN * _LANES), size // (2 * KEYS)),
        (_RUN, KEYS * width, _RUN * _LANES, 2 * KEYS * width),
    )
    by_rows = TV(threads, Layout((_RUN, KEYS), (1, width)), (width, size))
    by_columns = TV(threads, Layout((KEYS, _RUN), (width, 1)), (width, size))
    rows = V[b, g].gather((width, size), lambda e, p: (key_at(n * size + p), e))
    values = load(rows, by_rows, edge=0)  # of 4 elements at a time
    turned = values.gather(by_columns, lambda e, p: (e, p))
    copy(turned, W[b, g].tile((width, size), (0, n)), edge=0)  # of 16 keys

    def element(b: Int, g: Int, e: Int, p: Int) -> Value:
        return where(key_at(p) < keys, elements(V)(b, g, key_at(p), e), 0)

    assert_equals(W, element)
