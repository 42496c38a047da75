"""Emission: a kernel as the text that a GPU's compiler takes, the compiler, and what it reports."""
