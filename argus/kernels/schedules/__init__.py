"""The schedules of GEMM: tiling, stages, pipelining and epilogue of each kind of configuration."""
