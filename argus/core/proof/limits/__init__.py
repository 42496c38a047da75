"""Limits: bounds of accesses, alignment and vector width, integer widths, budgets of registers and shared memory."""
