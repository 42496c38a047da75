"""Kernels of rows on Hopper: each row of a matrix of any extents is reduced, normalised or summed up."""
