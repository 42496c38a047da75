"""Outputs: claims, coverage, write-once, and the tiles that blocks store."""
