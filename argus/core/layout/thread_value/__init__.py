"""Thread-value (TV) layouts: (thread, value index) to tile element, their modes along axes, and their projections."""
