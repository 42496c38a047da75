"""Runners: what launches a built kernel on a machine."""
