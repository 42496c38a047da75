"""Solver backends that decide queries; `argus.solvers.registry.get` loads one by name on first use."""
