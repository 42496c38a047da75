"""Nests: what a graph of tensor operations computes, as expressions over affine reads. Pure data and functions."""
