"""Hopper instructions (H100, H200), by the unit that executes them: a warpgroup, one thread, a warp.

Sources: NVIDIA PTX ISA, sections on wgmma, cp.async.bulk, cp.async, ldmatrix, stmatrix and mma; CUDA driver API,
tensor map objects; CUTLASS, traits of SM90 instructions.
"""

from __future__ import annotations

from argus.core.atom import Atom
from argus.core.atoms.sm_90a import reductions, tma, warp, wgmma

ATOMS: tuple[Atom, ...] = (*warp.ATOMS, *tma.ATOMS, *reductions.ATOMS, *wgmma.ATOMS)
