"""Argus for torch: programs of torch as proved kernels. It needs the `torch` extra."""
