"""The interpreter: executes kernels on concrete sizes with NumPy values and tags, under adversarial schedules."""
