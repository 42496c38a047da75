"""The verifier: proves or refutes kernels and programs, suggests claims, and writes them into kernel files."""
