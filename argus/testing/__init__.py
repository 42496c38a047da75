"""Helpers for tests of layout code and kernels: Hypothesis strategies, laws, differential tests, mutation operators.

`argus.testing.strategies` needs Hypothesis (`pip install 'argus[testing]'`); `argus.testing.differential` does not.
"""
