"""Backends that decide queries; `argus.solvers.registry.get` finds one by name and loads it then."""
