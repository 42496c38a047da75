"""KernelBench on a checkout of the user's: each problem in a process of its own, which imports this package."""
