"""Registry of the transformations that the knowledge base refers to."""

from __future__ import annotations

from collections.abc import Mapping

from argus.search.techniques import gfx942, loads, rewrites, sm_90a
from argus.search.transformation import Transformation, combine

TRANSFORMATIONS: Mapping[str, Transformation] = {
    # loads
    "vector-loads": combine(loads.VECTOR_LOADS, gfx942.VECTOR_LOADS),
    "hardware-bounds-check": gfx942.HARDWARE_BOUNDS_CHECK,
    "bank-conflict-mitigation": combine(loads.SWIZZLE, gfx942.SWIZZLE),
    "kpack": gfx942.KPACK,
    "smaller-mfma": gfx942.SMALLER_MFMA,
    # tile sizes
    "larger-bm": combine(sm_90a.LARGER_BM, gfx942.LARGER_BM),
    "larger-bn": combine(sm_90a.LARGER_BN, gfx942.LARGER_BN),
    "larger-bk": combine(sm_90a.LARGER_BK, gfx942.LARGER_BK),
    "more-waves": gfx942.MORE_WAVES,
    "agprs": gfx942.AGPRS,
    # pipelining and instruction order
    "async-copy": combine(loads.ASYNC_COPY, gfx942.ASYNC_COPY),
    "tma-loads": loads.TMA_LOADS,
    "software-pipelining": combine(loads.SOFTWARE_PIPELINING, gfx942.SOFTWARE_PIPELINING),
    "more-stages": sm_90a.MORE_STAGES,
    "loop-unrolling": combine(gfx942.LOOP_UNROLLING, rewrites.LOOP_UNROLLING),
    "sched-barriers": combine(gfx942.SCHED_BARRIERS, rewrites.SCHED_BARRIERS),
    "wave-priority": combine(gfx942.PRIORITY, rewrites.PRIORITY),
    "load-hoisting": rewrites.LOAD_HOISTING,
    "fp8-promotion": rewrites.FP8_PROMOTION,
    # warp specialisation and epilogue
    "tma-epilogue": sm_90a.TMA_EPILOGUE,
    "warp-specialisation": sm_90a.WARP_SPECIALISATION,
    "persistent-kernel": sm_90a.PERSISTENT,
    "register-reallocation": sm_90a.REGISTER_REALLOCATION,
    "async-wgmma": sm_90a.ASYNC_WGMMA,
    "full-tile-epilogue": sm_90a.FULL_TILE_EPILOGUE,
    "single-epilogue-buffer": sm_90a.SINGLE_EPILOGUE_BUFFER,
    "more-epilogue-buffers": sm_90a.MORE_EPILOGUE_BUFFERS,
    "interleaved-fragment-loads": gfx942.INTERLEAVED_FRAGMENT_LOADS,
    "8-wave-ping-pong": gfx942.PING_PONG,
    "ping-pong": sm_90a.PING_PONG,
    # tile order and cooperation between blocks
    "stagger-k": gfx942.STAGGER_K,
    "xcd-remap": gfx942.XCD_REMAP,
    "grouped-order": sm_90a.GROUPED_ORDER,
    "hilbert-order": sm_90a.HILBERT_ORDER,
    "tma-multicast": sm_90a.MULTICAST,
    "split-k": sm_90a.SPLIT_K,
    "more-splits": sm_90a.MORE_SPLITS,
    "swap-ab": sm_90a.SWAP_AB,
}
"""By name, in an order that leads from a first kernel to a fast one."""
