"""Operators on GPU tensors: `matmul` and `scaled_matmul`."""
