"""The concrete meaning of a kernel: NumPy values and tags, adversarial moments, no solver."""
