"""How a search decides: techniques, planners, speed of light, when to stop. Pure functions over plain data."""
