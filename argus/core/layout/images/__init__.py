"""Layouts by their images: tables of offsets, and the layouts recovered from them."""
