"""What cells and outputs hold, as expressions (`argus.core.values`): lazily."""
