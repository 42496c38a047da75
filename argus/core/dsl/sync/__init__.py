"""Synchronisation in the DSL: barriers, rings, queues, turns, and the order in which blocks take tiles."""
