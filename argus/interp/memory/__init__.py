"""Memory of the interpreter: cells, views, copies, races, and the trace of writes."""
