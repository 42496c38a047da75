"""Kernels as CUDA for sm_90a: one self-contained file, compiled by NVRTC."""
