"""The transformations that files of the knowledge base name."""

from __future__ import annotations

from collections.abc import Mapping

from argus.search.techniques import gfx942, loads, rewrites, sm_90a
from argus.search.transformation import Transformation, joined

TRANSFORMATIONS: Mapping[str, Transformation] = {
    # how tiles come in
    "vector-loads": joined(loads.VECTORS, gfx942.VECTORS),
    "hardware-bounds-check": gfx942.GUARDED,
    "bank-conflict-mitigation": joined(loads.WITHOUT_CONFLICTS, gfx942.WITHOUT_CONFLICTS),
    "kpack": gfx942.LONG_RUNS,
    "smaller-mfma": gfx942.SMALL_PRODUCTS,
    # how large they are
    "larger-bm": joined(sm_90a.TALLER, gfx942.TALLER),
    "larger-bn": joined(sm_90a.WIDER, gfx942.WIDER),
    "larger-bk": joined(sm_90a.DEEPER, gfx942.DEEPER),
    "more-waves": gfx942.MORE_WAVES,
    "agprs": gfx942.ACCUMULATION,
    # what is under way at once
    "async-copy": joined(loads.ASYNCHRONOUS, gfx942.ASYNCHRONOUS),
    "tma-loads": loads.COPY_ENGINE,
    "software-pipelining": joined(loads.PIPELINED, gfx942.PIPELINED),
    "more-stages": sm_90a.SLOTS,
    "loop-unrolling": joined(gfx942.UNROLLED, rewrites.UNROLLED),
    "sched-barriers": joined(gfx942.PINNED, rewrites.PINNED),
    "wave-priority": joined(gfx942.PRIORITY, rewrites.PRIORITY),
    "load-hoisting": rewrites.LOADS_FIRST,
    "fp8-promotion": rewrites.PROMOTED,
    # who does what
    "tma-epilogue": sm_90a.BOX,
    "warp-specialisation": sm_90a.SPECIALISED,
    "persistent-kernel": sm_90a.PERSISTENT,
    "register-reallocation": sm_90a.REALLOCATION,
    "async-wgmma": sm_90a.IN_FLIGHT,
    "full-tile-epilogue": sm_90a.WHOLE,
    "single-epilogue-buffer": sm_90a.ONE_BOX,
    "more-epilogue-buffers": sm_90a.MORE_BOXES,
    "interleaved-fragment-loads": gfx942.SLICES,
    "8-wave-ping-pong": gfx942.PING_PONG,
    "ping-pong": sm_90a.PING_PONG,
    # in which order, and together with whom
    "stagger-k": gfx942.STAGGERED,
    "xcd-remap": gfx942.BANDS,
    "grouped-order": sm_90a.SUPER_TILES,
    "hilbert-order": sm_90a.CURVE,
    "tma-multicast": sm_90a.MULTICAST,
    "split-k": sm_90a.SPLIT_K,
    "more-splits": sm_90a.MORE_SPLITS,
    "swap-ab": sm_90a.EXCHANGED,
}
"""By name, in an order in which one may take them from a first kernel to a fast one."""
