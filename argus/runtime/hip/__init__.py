"""The HIP runtime, for AMD GPUs."""
