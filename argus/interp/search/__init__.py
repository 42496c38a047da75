"""Search for a failing run: schedules, sizes, shrinking, provenance of wrong elements, and repairs."""
