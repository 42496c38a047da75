"""Runs emitted text on the CPU and compares it with the interpreter."""
