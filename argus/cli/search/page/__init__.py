"""Writes a search run as one self-contained HTML page, from its journal alone."""
