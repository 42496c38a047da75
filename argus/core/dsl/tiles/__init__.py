"""Register tiles in the DSL: fragments, element-wise arithmetic, reductions, masks."""
