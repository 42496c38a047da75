"""Warp-specialised kernels: extraction and proof of their ring protocol, then sequentialisation for the data flow.

`counters` gives counters closed forms; `events` lists a role's operations on barriers and rings; `extract_protocol`
reads these as a ring protocol; `agent_order` and `in_loop_order` check the order of agents; `sequential` moves the fill
of a stage to the wait for it, which the protocol justifies; `obligations` collects all conditions of this.
"""
