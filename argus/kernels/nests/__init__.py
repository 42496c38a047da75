"""Templates: kernels made from nests. Each takes nests in canonical form and a typed configuration."""
