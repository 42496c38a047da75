"""Problems: a GEMM by name or a user's file, its reference, and the bytes and FLOPs it cannot do without."""
