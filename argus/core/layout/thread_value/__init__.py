"""Thread-value layouts: which element of a tile each thread holds in each of its values."""
