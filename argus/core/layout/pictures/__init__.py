"""Layouts as pictures: a grid of cells as plain data, and its text in SVG and in plain characters."""
