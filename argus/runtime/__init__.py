"""The runtime: launches of built kernels, the kernel cache, worker processes and the sandbox for untrusted kernels."""
