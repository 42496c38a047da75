"""Fewer collections of cyclic garbage while a kernel is verified.

A proof makes many objects that live until its end, and few cycles; each collection looks at all that are young, and
now and then at all there are: with Python's usual thresholds that is a seventh of the time. Objects of a proof that are
left at its end are old: a full collection looks at them.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

_YOUNG = 1_000_000
"""New objects between two collections, at least."""


@contextmanager
def few_collections() -> Generator[None]:
    """A higher threshold of the process, or its own if that is higher or none; also a decorator."""
    usual = gc.get_threshold()
    raised = 0 < usual[0] < _YOUNG
    if raised:
        gc.set_threshold(_YOUNG, *usual[1:])
    try:
        yield
    finally:
        if raised and gc.get_freeze_count() == 0:
            gc.freeze()  # all become old, so that the next collection need not look at them
            gc.unfreeze()
        gc.set_threshold(*usual)
