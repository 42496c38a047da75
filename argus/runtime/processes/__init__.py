"""Child processes: a launch that may hang or crash, a watchdog that kills it, and the request that it reads."""
