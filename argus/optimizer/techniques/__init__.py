"""The transformations that files of the knowledge base name."""

from __future__ import annotations

from collections.abc import Mapping

from argus.optimizer.techniques import gfx942, loads, rewrites, sm_90a
from argus.optimizer.transformation import Transformation, joined

TRANSFORMATIONS: Mapping[str, Transformation] = {
    "software-pipelining": joined(loads.PIPELINED, gfx942.PIPELINED),
    "vector-loads": joined(loads.VECTORS, gfx942.VECTORS),
    "async-copy": joined(loads.ASYNCHRONOUS, gfx942.ASYNCHRONOUS),
    "copy-engine": loads.COPY_ENGINE,
    "bank-conflict-mitigation": joined(loads.WITHOUT_CONFLICTS, gfx942.WITHOUT_CONFLICTS),
    "super-tiles": sm_90a.SUPER_TILES,
    "hilbert-order": sm_90a.CURVE,
    "persistent-order": sm_90a.PERSISTENT,
    "register-reallocation": sm_90a.REALLOCATION,
    "product-in-flight": sm_90a.IN_FLIGHT,
    "staged-epilogue": sm_90a.BOX,
    "whole-tile-boxes": sm_90a.WHOLE,
    "one-box": sm_90a.ONE_BOX,
    "tma-multicast": sm_90a.MULTICAST,
    "wider-tiles": joined(sm_90a.WIDER, gfx942.WIDER),
    "taller-tiles": joined(sm_90a.TALLER, gfx942.TALLER),
    "deeper-slices": joined(sm_90a.DEEPER, gfx942.DEEPER),
    "more-slots": sm_90a.SLOTS,
    "more-splits": sm_90a.MORE_SPLITS,
    "ping-pong": sm_90a.PING_PONG,
    "exchanged-operands": sm_90a.EXCHANGED,
    "split-k": sm_90a.SPLIT_K,
    "warp-specialisation": sm_90a.SPECIALISED,
    "loop-unrolling": joined(gfx942.UNROLLED, rewrites.UNROLLED),
    "loads-first": rewrites.LOADS_FIRST,
    "instruction-scheduling": joined(gfx942.PINNED, rewrites.PINNED),
    "wave-priority": joined(gfx942.PRIORITY, rewrites.PRIORITY),
    "fp8-promotion": rewrites.PROMOTED,
    "workgroup-swizzle": gfx942.BANDS,
    "guarded-loads": gfx942.GUARDED,
    "stagger-k": gfx942.STAGGERED,
    "mfma-layouts": gfx942.LONG_RUNS,
    "small-products": gfx942.SMALL_PRODUCTS,
    "more-waves": gfx942.MORE_WAVES,
    "agprs": gfx942.AGPRS,
    "wave-ping-pong": gfx942.PING_PONG,
}
"""By name."""
