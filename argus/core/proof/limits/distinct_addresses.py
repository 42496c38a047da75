"""Obligations that the elements of one shared tensor have distinct addresses (I22).

The other analyses rely on this: race detection and reaching definitions compare coordinates, not addresses.
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
    """I22 for each shared tensor: its layout maps no two elements to one address."""
    for stmt in walk(kernel.body):
        if not isinstance(stmt, Alloc) or not isinstance(stmt.buffer.layout, Staged):
            continue
        name, why = stmt.buffer.name, address_conflict(stmt.buffer.layout)
        yield Obligation(
            "I22",
            f"the elements of `{name}` have distinct addresses",
            stmt,
            algebra.FALSE if why else algebra.TRUE,
            witness=(("layout", why),) if why else (),
            fault=f"the elements of `{name}` do not have distinct addresses: {why}",
            help="give rows and slots strides of at least their number of elements",
            premises="nothing",
        )


def address_conflict(layout: Staged) -> str:
    """Why two elements share an address, or one lies outside the buffer; empty if neither happens."""
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
