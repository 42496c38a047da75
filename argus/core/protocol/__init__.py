"""Ring protocols and three meanings of them: `search` runs a machine, `graph` measures distances, `obligations` asks.

None of the three imports another; `ring` and `outcome` are all that they share.
"""
