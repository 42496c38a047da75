"""Searches for the fastest configuration: candidates, their proofs and code, their times on a GPU."""
