"""The cost model of GEMM configurations on MI300X: waves of tiles over the CUs, each schedule at a fraction of the
peak.

The fractions are estimates from the structure of the schedules, not measurements: the double buffer leaves the matrix
unit idle at each barrier, the ping-pong and the interleaved schedule overlap loads with MFMAs. The model does capture
wave quantisation.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from argus.kernels.schedules.cdna3 import Cdna3, Cdna3PingPong
from argus.kernels.schedules.cdna3_interleaved import Cdna3Interleaved

Known = Cdna3 | Cdna3Interleaved | Cdna3PingPong
UNITS = 304
"""Compute units of an MI300X."""
_PEAK = 4.3e6
"""bf16 FLOPs of a CU per microsecond: 1307 TFLOP/s over all CUs."""
_SHARES: Mapping[type, float] = {Cdna3: 0.45, Cdna3PingPong: 0.65, Cdna3Interleaved: 0.6}
_OF_SMALL_TILES = 0.85
"""Of the share of large interleaved tiles, that of those below 256 x 256: they read more of LDS for each product."""
_OF_NARROW_LOADS: Mapping[int, float] = {16: 1, 4: 0.44, 2: 0.29}
"""Of the share of loads of 16 bytes, that of loads of fewer: as `argus perf` predicts at 4096 cubed."""
_LARGE = 256 * 256
_EMPTY = 4.0
"""Fixed time of a launch, in microseconds."""


def microseconds(config: Known, m: int, n: int, k: int) -> float:
    """Predicted time of C = A @ B^T of these extents."""
    rounds = ceil(ceil(m / config.bm) * ceil(n / config.bn) / UNITS)
    deep = config.bk * ceil(k / config.bk)
    share = _SHARES[type(config)]
    if isinstance(config, Cdna3Interleaved):
        share *= _OF_NARROW_LOADS[config.align] * (_OF_SMALL_TILES if config.bm * config.bn < _LARGE else 1)
    return _EMPTY + rounds * 2 * config.bm * config.bn * deep / (_PEAK * share)


def cheapest(configs: Mapping[str, object], m: int, n: int, k: int) -> str:
    """The name of the gfx942 configuration with the least predicted time; the first of equals."""
    known = {name: each for name, each in configs.items() if isinstance(each, Known)}
    return min(known, key=lambda name: microseconds(known[name], m, n, k))
