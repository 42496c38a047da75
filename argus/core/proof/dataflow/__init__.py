"""Data-flow analysis: timeline, accesses, reaching definitions and loop invariants."""
