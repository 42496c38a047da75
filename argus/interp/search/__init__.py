"""The search for a failing run: schedules, sizes, shrinking, provenance, and repairs."""
