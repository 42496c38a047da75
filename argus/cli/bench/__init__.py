"""`argus bench`: solvers compared on recorded queries."""
