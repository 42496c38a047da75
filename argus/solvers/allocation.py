"""Allocator settings that keep freed memory in the process; the only module that calls glibc's mallopt.

Every check has its own solver context of about 24 MB. By default glibc may return that memory to the system when the
context is freed, depending on the heap's layout; the next context then faults in each page again, which can take longer
than the check.
"""

from __future__ import annotations

import ctypes
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # parameter numbers of mallopt(3)
_LARGEST = 32 << 20  # glibc's upper limit for M_MMAP_THRESHOLD


@cache
def keep_freed_memory() -> bool:
    """Let the allocator keep up to 64 MiB of freed memory; returns whether it has the option (glibc only)."""
    try:
        option = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):  # no glibc
        return False
    return bool(option(_MMAP_THRESHOLD, _LARGEST)) and bool(option(_TRIM_THRESHOLD, 2 * _LARGEST))
