"""The CUDA driver: its calls, status codes and tensor maps."""
