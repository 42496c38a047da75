"""gfx942 machine code, executed on the CPU: code objects, decoding, waves on NumPy arrays, and what they do wrong.

Nothing here is shared with the compiler or with `argus.interp`: agreement of the two is evidence.
"""
