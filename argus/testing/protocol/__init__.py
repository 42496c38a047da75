"""Ring protocols as an explicit-state machine: the oracle of the graph and the obligations of `core.protocol`."""
