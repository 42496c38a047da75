"""Certificates of delivered kernels: data model, creation, independent check, and the output folder."""
