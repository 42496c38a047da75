"""How blocks take the tiles of attention where all sequences have as many."""

from __future__ import annotations

from argus.language import Int, Order, Persistent, assume, persistent


def in_rounds(counts: tuple[Int, Int, Int], order: Order, *, zigzag: bool) -> Persistent:
    """So many tiles of each head, heads, and sequences, which blocks take in rounds."""
    number, heads, batch = counts
    assume(batch * heads < 1 << 24, batch * heads * number < 1 << 24)  # indices then fit 32 bits
    return persistent(counts, order=order, zigzag=zigzag)
