"""The abstract values of the analysis: contents of cells, sums, and multisets of contributions."""
