"""What cells and outputs hold, as expressions (`argus.core.values`): lazily, beside the rules of the other modules."""
