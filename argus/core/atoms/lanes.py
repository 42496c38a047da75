"""Shuffles: instructions that move registers between the lanes of a warp or wave.

Sources: LLVM, AMDGPU usage, ds_bpermute; NVIDIA PTX ISA, shfl.sync.
"""

from __future__ import annotations

from collections.abc import Mapping

from argus.core.atom import Atom, Completion, Operand

_WORD = Operand("register", vector_bits=32)

ds_bpermute_b32 = Atom(
    "ds_bpermute_b32",
    frozenset(("gfx942",)),
    64,
    {"source": _WORD, "target": _WORD},
    Completion(),
    {},
    issue_cycles=4.0,
)
shfl_sync_b32 = Atom(
    "shfl_sync_b32",
    frozenset(("sm_90a",)),
    32,
    {"source": _WORD, "target": _WORD},
    Completion(),
    {},
    issue_cycles=2.0,
)

SHUFFLES: Mapping[str, Atom] = {"gfx942": ds_bpermute_b32, "sm_90a": shfl_sync_b32}
"""By target. Their text is a call of `lane_from`, a device function of each target (`argus.emit.shuffles`)."""
