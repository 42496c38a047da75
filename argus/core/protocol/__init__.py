"""Ring protocols with independent semantics: an event graph (`graph`) and proof obligations (`obligations`).

A third, explicit-state search, is in `argus.testing.protocol`. None imports another; they share `ring` and `outcome`.
"""
