"""Layouts as matrices over F2, the field of two elements."""
