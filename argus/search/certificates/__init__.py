"""Certificates of delivered kernels: what they claim, how they are checked, and the files of a delivery."""
