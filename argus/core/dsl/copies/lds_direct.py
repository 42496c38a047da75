"""Legality of direct copies to LDS (`global_load_lds`), whose lanes write consecutive vectors."""

from __future__ import annotations

from math import prod

import numpy as np

from argus.core.atom import Atom
from argus.core.ir import Staged, View, static
from argus.core.layout import TV
from argus.core.walk import IntArray


def lds_direct_error(atom: Atom, memory: View, coordinates: list[IntArray], by: TV) -> str:
    """Why the lanes of a wave do not write consecutive vectors of one run of shared memory; empty if they do.

    coordinates: the buffer coordinates of each (thread, value). A swizzle may permute whole vectors of a run among the
    lanes: then each lane reads the vector that belongs at its address.
    """
    layout, vector = memory.buffer.layout, atom.vector_bits // memory.buffer.dtype.bits
    assert isinstance(layout, Staged)
    threads, values = by.threads.size(), by.values.size()
    if threads % atom.unit != 0 or values % vector != 0:
        return f"{threads} threads of {values} elements are not whole waves of vectors of {vector}"
    sizes = tuple(static(size) for size in memory.buffer.shape)
    number = np.ravel_multi_index([np.broadcast_to(each, (threads, values)) for each in coordinates], sizes, order="F")
    offset = layout.layout.table()[number].reshape(threads // atom.unit, atom.unit, -1, vector).transpose(0, 2, 1, 3)
    run = offset.reshape(*offset.shape[:2], atom.unit * vector)
    if (run - run[:, :, :1] != np.arange(atom.unit * vector)).any():
        return f"lane l does not write vector l of {atom.unit * vector} consecutive elements"
    if layout.swizzle is None:
        return ""
    moved = layout.swizzle.images(run.ravel()).reshape(run.shape)
    whole = (moved.reshape(*run.shape[:2], atom.unit, vector) - np.arange(vector)).reshape(-1, vector)
    if (np.sort(moved) != run).any() or (whole != whole[:, :1]).any() or prod(run.shape) == 0:
        return f"{layout.swizzle} permutes elements across the runs that a wave writes, or splits vectors"
    return ""
