"""Evaluation of candidates: the gate of proofs and tests, worker processes, and times on a GPU."""
