"""Synchronisation: races, proxies, waits, barriers, roles, and what crosses launches."""
