"""CUDA: the driver, devices, launches of built kernels, and timing."""
