"""Problems: a GEMM by name or a user's file, references, and lower bounds of bytes and FLOPs."""
