"""Values: what a cell holds, sums, and multisets of contributions."""
