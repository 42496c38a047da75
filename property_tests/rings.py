"""Random ring protocols: correct ones after a few edits."""

from __future__ import annotations

from hypothesis import strategies as st

from argus.core.protocol.ring import Protocol, attention, flash, held_per_tile, pingpong, plain
from argus.testing.protocol.mutations import Edit, apply_edits

EDITS = 3


@st.composite
def rings(draw: st.DrawFn) -> Edit:
    """A protocol and the names of its edits: S <= 3, lag <= 2, one or two consumers, or two rings, or alternating
    tiles, or a ring held over a tile.
    """
    return apply_edits(draw(_bases()), draw(st.lists(st.integers(0, 2**31), max_size=EDITS)))


@st.composite
def _bases(draw: st.DrawFn) -> Protocol:
    stages, lag = draw(st.integers(1, 3)), draw(st.integers(0, 2))
    match draw(st.integers(0, 7)):
        case 0:
            orders = st.sampled_from(["K(i+1) V(i)", "K(i) V(i)", "V(i) K(i)"])
            numbers = st.integers(1, 2)
            return attention(draw(numbers), draw(numbers), order=draw(orders), persistent=draw(st.booleans()))
        case 1:
            return pingpong(stages, lag=lag, turns=draw(st.booleans()))
        case 2:
            numbers = st.integers(1, 2)
            over = draw(st.booleans())
            return held_per_tile(stages, draw(numbers), consumers=draw(numbers), lag=min(lag, 1), persistent=over)
        case 3:
            one, two, three = (draw(st.integers(1, 2)) for _ in range(3))
            return flash(one, two, q_stages=three, turns=draw(st.booleans()), late=draw(st.booleans()))
        case _:
            pending = draw(st.sampled_from([lag, lag, 0, 1, 2]))
            parts = draw(st.sampled_from([(1,), (1, 1)]))
            return plain(stages, consumers=draw(st.integers(1, 2)), lag=lag, pending=pending, parts=parts)
