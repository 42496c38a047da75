"""I22 within one buffer: two elements of shared memory that are alive together have addresses of their own.

Everything else takes an element for its cell: races, and who wrote what a read sees, are judged by coordinates.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from argus.core import algebra
from argus.core.ir import Alloc, Kernel, Staged, walk
from argus.core.layout import Layout
from argus.core.proof.obligation import Obligation


def distinct_address_obligations(kernel: Kernel) -> Iterator[Obligation]:
    """An obligation for each tensor of shared memory; it is a fault of the program where it fails."""
    for stmt in walk(kernel.body):
        if not isinstance(stmt, Alloc) or not isinstance(stmt.buffer.layout, Staged):
            continue
        name, why = stmt.buffer.name, address_conflict(stmt.buffer.layout)
        yield Obligation(
            "I22",
            f"the elements of `{name}` have addresses of their own",
            stmt,
            algebra.FALSE if why else algebra.TRUE,
            witness=(("layout", why),) if why else (),
            fault=f"elements of `{name}` have no addresses of their own: {why}",
            help="give rows and slots strides of at least what they hold",
            given="nothing",
        )


def address_conflict(layout: Staged) -> str:
    """Why some element has no cell of its own within the buffer; empty if all have."""
    collision = _collision(layout.layout)
    if collision:
        return collision
    swizzle = layout.swizzle
    if swizzle is not None and layout.layout.cosize() % swizzle.period != 0:
        return f"{swizzle} permutes blocks of {swizzle.period} elements, which do not divide {layout.layout.cosize()}"
    return ""


@lru_cache(maxsize=256)
def _collision(layout: Layout) -> str:
    images = layout.table()
    if int(images.min()) < 0:
        return f"{layout} has negative offsets"
    numbers, counts = np.unique(images, return_counts=True)
    if len(numbers) == len(images):
        return ""
    shared = int(numbers[counts > 1][0])
    first, second = np.flatnonzero(images == shared)[:2].tolist()
    return f"{layout} puts elements {first} and {second} both at offset {shared}"
