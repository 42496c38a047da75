"""Executes emitted text on the CPU: the units that are compiled, and the runtime that they are linked with."""
