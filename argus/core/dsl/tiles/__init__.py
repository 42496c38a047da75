"""Register tiles in the language: fragments, elementwise arithmetic, reductions, masks."""
