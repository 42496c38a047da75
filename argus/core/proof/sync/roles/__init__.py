"""Kernels of roles: their protocol taken out of the program and proved, then one line of steps in its place.

`counters` gives counters closed forms; `events` lists what a role does to barriers and rings; `protocol` reads these
as a ring protocol; `turns` judges the order of agents; `sequential` puts the fill of a slot where it is waited for,
which the protocol licenses; `obligations` asks what all this presumes.
"""
