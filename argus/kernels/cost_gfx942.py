"""Which schedule of MI300X suits a shape: tiles in rounds over its units, each at a share of the peak.

The shares are guesses from how the schedules are built, not measurements: the double buffer leaves the matrix unit
idle at each of its barriers, the ping-pong hides loads under products. What the model does say is what a round costs
that few tiles fill.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from argus.kernels.schedules.cdna3 import Cdna3, Cdna3PingPong

UNITS = 304
"""Compute units of an MI300X."""
_PEAK = 4.3e6
"""Products of bf16 and sums that a unit does in a microsecond: 1307 TFLOP/s over all of them."""
_SHARES: Mapping[type, float] = {Cdna3: 0.45, Cdna3PingPong: 0.65}
_EMPTY = 4.0
"""Microseconds around all tiles."""


def microseconds(config: Cdna3 | Cdna3PingPong, m: int, n: int, k: int) -> float:
    """What C = A @ B^T of these extents is expected to take."""
    rounds = ceil(ceil(m / config.bm) * ceil(n / config.bn) / UNITS)
    deep = config.bk * ceil(k / config.bk)
    return _EMPTY + rounds * 2 * config.bm * config.bn * deep / (_PEAK * _SHARES[type(config)])


def cheapest(configs: Mapping[str, object], m: int, n: int, k: int) -> str:
    """The name of the configuration of this machine that is expected to take least; the first of equals."""
    known = {name: each for name, each in configs.items() if isinstance(each, Cdna3 | Cdna3PingPong)}
    return min(known, key=lambda name: microseconds(known[name], m, n, k))
