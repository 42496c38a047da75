"""Decisions of the kernel search, as pure functions: techniques, planners, speed-of-light bounds, stopping rules."""
