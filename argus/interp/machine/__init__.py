"""The interpreter's machine model: agents, waves, barriers, asynchronous operations, vector clocks, deadlocks."""
