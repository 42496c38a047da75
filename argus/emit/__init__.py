"""Code emission: CUDA and HIP text of a kernel, the compilers, and their resource reports."""
