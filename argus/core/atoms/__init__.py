"""Instruction tables, one module per architecture."""
