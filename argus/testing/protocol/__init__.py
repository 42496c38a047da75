"""An explicit-state model checker for ring protocols: the test oracle of `core.protocol`'s graph and obligations."""
