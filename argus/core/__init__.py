"""The pure core: data and functions, no effects."""
