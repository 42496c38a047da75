"""The machine of the interpreter: agents and waves, barriers, queues of asynchronous operations, clocks, deadlock."""
