"""Layouts as matrices over F2."""
