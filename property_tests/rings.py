"""Random ring protocols: right ones after a few edits."""

from __future__ import annotations

from hypothesis import strategies as st

from argus.core.protocol.mistakes import Edit, edited
from argus.core.protocol.ring import Protocol, attention, pingpong, plain

EDITS = 3


@st.composite
def rings(draw: st.DrawFn) -> Edit:
    """The edits by name, and the protocol: S <= 3, lag <= 2, one or two consumers, or two rings, or tiles in turn."""
    return edited(draw(_bases()), draw(st.lists(st.integers(0, 2**31), max_size=EDITS)))


@st.composite
def _bases(draw: st.DrawFn) -> Protocol:
    stages, lag = draw(st.integers(1, 3)), draw(st.integers(0, 2))
    match draw(st.integers(0, 5)):
        case 0:
            orders = st.sampled_from(["K(i+1) V(i)", "K(i) V(i)", "V(i) K(i)"])
            numbers = st.integers(1, 2)
            return attention(draw(numbers), draw(numbers), order=draw(orders), persistent=draw(st.booleans()))
        case 1:
            return pingpong(stages, lag=lag, turns=draw(st.booleans()))
        case _:
            pending = draw(st.sampled_from([lag, lag, 0, 1, 2]))
            parts = draw(st.sampled_from([(1,), (1, 1)]))
            return plain(stages, consumers=draw(st.integers(1, 2)), lag=lag, pending=pending, parts=parts)
