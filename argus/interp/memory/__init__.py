"""The interpreter's memory model: cells, views, copies, race detection, and the trace of writes."""
