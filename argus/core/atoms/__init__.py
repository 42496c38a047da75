"""The instruction tables, one file an architecture."""
