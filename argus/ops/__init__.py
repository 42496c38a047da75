"""Operators on tensors: `matmul` and `scaled_matmul`, from operands to a launched kernel."""
