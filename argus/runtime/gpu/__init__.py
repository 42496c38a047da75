"""GPUs of every kind: loading and launching kernels, memory, timing."""
