"""Hypothesis profiles: `ci` gives the same examples on every machine, `fuzz` searches on with fresh seeds."""

from __future__ import annotations

from hypothesis import settings

# A deadline measures the machine, not the code: a shared runner would fail at random.
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=100)
settings.register_profile("fuzz", deadline=None, max_examples=20_000, print_blob=True)
settings.load_profile("ci")
