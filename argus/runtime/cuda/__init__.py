"""The CUDA runtime: driver, devices, launches of built kernels, and timing."""
