"""Queries as SMT-LIB: lowering, printing, parsing."""
