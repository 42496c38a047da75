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
from argus.kernels.schedules.stream_cdna3 import Cdna3Stream

Known = Cdna3 | Cdna3Interleaved | Cdna3PingPong
UNITS = 304
"""Compute units of an MI300X."""
_PEAK = 4.3e6
"""bf16 FLOPs of a CU per microsecond: 1307 TFLOP/s over all CUs."""
_SHARES: Mapping[type, float] = {Cdna3: 0.45, Cdna3PingPong: 0.65, Cdna3Interleaved: 0.6}
_OF_SMALL_TILES = 0.85
"""Of the share of large interleaved tiles, that of those below 256 x 256: they read more of LDS for each product."""
_OF_LEAST_TILES = 0.83
"""Of the share of tiles of 128 x 128, that of those of 64 x 128, which read more of global memory: by `argus perf`."""
_OF_NARROW_LOADS: Mapping[int, float] = {16: 1, 4: 0.44, 2: 0.29}
"""Of the share of loads of 16 bytes, that of loads of fewer: as `argus perf` predicts at 4096 cubed."""
_LARGE, _SMALL = 256 * 256, 128 * 128
_SECOND = 8.0
"""Time of a second launch that adds up a few parts, in microseconds, by `argus perf`."""
_PARTS = 2e6
"""Bytes of partial sums that a microsecond writes or reads, by `argus perf`: stores and loads that nothing overlaps."""
_EMPTY = 4.0
"""Fixed time of a launch, in microseconds."""


def microseconds(config: Known, m: int, n: int, k: int, batch: int = 1) -> float:
    """Predicted time of `batch` products C = A @ B^T of these extents."""
    rounds = ceil(batch * ceil(m / config.bm) * ceil(n / config.bn) / UNITS)
    deep = config.bk * ceil(k / config.bk)
    share = _SHARES[type(config)]
    if isinstance(config, Cdna3Interleaved):
        share *= _OF_NARROW_LOADS[config.align] * (_OF_SMALL_TILES if config.bm * config.bn < _LARGE else 1)
        share *= _OF_LEAST_TILES if config.bm * config.bn < _SMALL else 1
    return _EMPTY + rounds * 2 * config.bm * config.bn * deep / (_PEAK * share)


def microseconds_in_parts(config: Cdna3Stream, m: int, n: int, k: int, batch: int = 1) -> float:
    """Predicted time of both launches of stream-K, as `microseconds`.

    Blocks of small tiles that share a CU hide what one waits for, so that they reach the share of large tiles.
    """
    runs = config.runs
    tiles = ceil(m / config.bm) * ceil(n / config.bn)
    blocks = ceil(tiles * runs.chunks / runs.run)
    rounds, deep = ceil(batch * blocks / UNITS), runs.run * config.bk * ceil(k / (config.bk * runs.chunks))
    share = _SHARES[Cdna3Interleaved] * _OF_NARROW_LOADS[config.align]
    if config.bm * config.bn < _LARGE and rounds == 1:
        share *= _OF_SMALL_TILES
    read = blocks if runs.run == 1 else blocks + tiles
    moved = 4 * config.bm * config.bn * batch * (blocks * runs.max_tiles + read)
    return _EMPTY + _SECOND + rounds * 2 * config.bm * config.bn * deep / (_PEAK * share) + moved / _PARTS


def cheapest_in_parts(
    configs: Mapping[str, Cdna3Stream], known: Mapping[str, object], m: int, n: int, k: int, batch: int = 1
) -> str | None:
    """The name of the stream-K configuration with the least predicted time; None if one of `known` takes less."""
    found = min(configs, key=lambda name: microseconds_in_parts(configs[name], m, n, k, batch))
    others = (microseconds(each, m, n, k, batch) for each in known.values() if isinstance(each, Known))
    return found if microseconds_in_parts(configs[found], m, n, k, batch) < min(others) else None


def cheapest(configs: Mapping[str, object], m: int, n: int, k: int, batch: int = 1) -> str:
    """The name of the gfx942 configuration with the least predicted time; the first of equals."""
    known = {name: each for name, each in configs.items() if isinstance(each, Known)}
    return min(known, key=lambda name: microseconds(known[name], m, n, k, batch))
