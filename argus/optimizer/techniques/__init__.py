"""The transformations that files of the knowledge base name."""

from __future__ import annotations

from collections.abc import Mapping

from argus.optimizer.techniques import loads, rewrites, sm_90a
from argus.optimizer.transformation import Transformation

TRANSFORMATIONS: Mapping[str, Transformation] = {
    "software-pipelining": loads.PIPELINED,
    "vector-loads": loads.VECTORS,
    "async-copy": loads.ASYNCHRONOUS,
    "copy-engine": loads.COPY_ENGINE,
    "bank-conflict-mitigation": loads.WITHOUT_CONFLICTS,
    "super-tiles": sm_90a.SUPER_TILES,
    "hilbert-order": sm_90a.CURVE,
    "persistent-order": sm_90a.PERSISTENT,
    "register-reallocation": sm_90a.REALLOCATION,
    "product-in-flight": sm_90a.IN_FLIGHT,
    "staged-epilogue": sm_90a.BOX,
    "whole-tile-boxes": sm_90a.WHOLE,
    "one-box": sm_90a.ONE_BOX,
    "tma-multicast": sm_90a.MULTICAST,
    "wider-tiles": sm_90a.WIDER,
    "taller-tiles": sm_90a.TALLER,
    "deeper-slices": sm_90a.DEEPER,
    "more-slots": sm_90a.SLOTS,
    "more-splits": sm_90a.MORE_SPLITS,
    "ping-pong": sm_90a.PING_PONG,
    "exchanged-operands": sm_90a.EXCHANGED,
    "split-k": sm_90a.SPLIT_K,
    "warp-specialisation": sm_90a.SPECIALISED,
    "loop-unrolling": rewrites.UNROLLED,
    "loads-first": rewrites.LOADS_FIRST,
    "pinned-schedule": rewrites.PINNED,
    "wave-priority": rewrites.PRIORITY,
}
"""By name."""
