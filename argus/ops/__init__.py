"""Operators on GPU tensors: matrix products, attention, and operators along the last axis."""
