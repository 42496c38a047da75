"""Emit kernels as self-contained CUDA files for sm_90a, compiled by NVRTC."""
