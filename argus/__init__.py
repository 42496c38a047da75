"""Argus: tile kernels whose data flow is proved."""
