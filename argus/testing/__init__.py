"""For those who test layout code: Hypothesis strategies, and the comparison of layout libraries.

`argus.testing.strategies` needs Hypothesis (`pip install 'argus[testing]'`); `argus.testing.differential` does not.
"""
