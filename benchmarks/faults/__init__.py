"""Faults seeded into Argus's own source: where they may stand, which tests see them, which tests fail."""
