"""The search for fast proved kernels: problems, designs, evaluation, journal, autotuning and certificates."""
