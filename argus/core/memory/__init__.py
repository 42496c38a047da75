"""The memory model of both targets: bank conflicts, coalescing, lane accesses, and placement in shared memory."""
