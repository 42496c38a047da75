"""Copies in the language, and the choice of their instructions."""
