"""Freed memory stays with the process: the only file that sets the C library's allocator.

Every check has a context of its own, of some 24 MB. By default glibc returns it to the system when the context goes, or
not, as the heap happens to lie; the next context then pays for each page again, which may take longer than the check.
"""

from __future__ import annotations

import ctypes
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # numbers of mallopt(3)
_LARGEST = 32 << 20  # as large as glibc takes for the second


@cache
def keep_freed_memory() -> bool:
    """Keep up to 64 MiB that was freed, rather than ask for it again; whether the allocator has such an option."""
    try:
        option = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):  # no glibc
        return False
    return bool(option(_MMAP_THRESHOLD, _LARGEST)) and bool(option(_TRIM_THRESHOLD, 2 * _LARGEST))
