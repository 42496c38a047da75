"""Adversarial test and timing harness for kernels on a device."""
