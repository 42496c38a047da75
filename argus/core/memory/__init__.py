"""The memory model of both targets: banks, coalescing, lanes and phases of an access, placement in shared memory."""
