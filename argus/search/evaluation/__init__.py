"""Evaluation of candidates: the gate of proofs and tests, worker processes, and GPU timing."""
