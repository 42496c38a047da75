"""`argus bench`: compares solvers on recorded queries."""
