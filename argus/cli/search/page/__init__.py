"""A run of a search as one page that a browser shows without any other file: from its journal alone."""
