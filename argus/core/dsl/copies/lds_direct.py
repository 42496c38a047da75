"""Copies to shared memory without registers, whose lanes write one after the other."""

from __future__ import annotations

from math import prod

import numpy as np

from argus.core.atom import Atom
from argus.core.ir import Staged, View, static
from argus.core.layout import TV
from argus.core.walk import IntArray


def why_not_direct(atom: Atom, memory: View, places: list[IntArray], by: TV) -> str:
    """Why the lanes of a wave do not fill one run of shared memory at a time; empty if they do.

    places: the buffer's coordinates of each (thread, value). A swizzle may permute the lanes' parts of a run among
    them, as whole vectors: it then lands on what each lane reads.
    """
    layout, vector = memory.buffer.layout, atom.vector_bits // memory.buffer.dtype.bits
    assert isinstance(layout, Staged)
    threads, values = by.threads.size(), by.values.size()
    if threads % atom.unit != 0 or values % vector != 0:
        return f"{threads} threads of {values} elements are no whole waves of vectors of {vector}"
    sizes = tuple(static(size) for size in memory.buffer.shape)
    number = np.ravel_multi_index([np.broadcast_to(place, (threads, values)) for place in places], sizes, order="F")
    offset = layout.layout.table()[number].reshape(threads // atom.unit, atom.unit, -1, vector).transpose(0, 2, 1, 3)
    run = offset.reshape(*offset.shape[:2], atom.unit * vector)
    if (run - run[:, :, :1] != np.arange(atom.unit * vector)).any():
        return f"lane l does not write vector l of {atom.unit * vector} neighbouring elements"
    if layout.swizzle is None:
        return ""
    moved = layout.swizzle.images(run.ravel()).reshape(run.shape)
    whole = (moved.reshape(*run.shape[:2], atom.unit, vector) - np.arange(vector)).reshape(-1, vector)
    if (np.sort(moved) != run).any() or (whole != whole[:, :1]).any() or prod(run.shape) == 0:
        return f"{layout.swizzle} moves elements out of what one wave writes at a time, or splits its vectors"
    return ""
