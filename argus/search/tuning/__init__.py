"""Autotuning: enumerates candidate configurations, proves and compiles them, and times them on a GPU."""
