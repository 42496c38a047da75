"""Data flow: the timeline, accesses, reaching definitions, and what holds at the head of a loop."""
