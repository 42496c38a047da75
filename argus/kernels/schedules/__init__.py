"""The schedules of GEMM: how a configuration tiles, stages, pipelines and stores."""
