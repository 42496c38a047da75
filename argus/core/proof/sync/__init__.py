"""Synchronisation: races, memory proxies, waits, barriers, role protocols, and data flow between launches."""
