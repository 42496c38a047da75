"""Verification reports as text, JSON, SARIF and SVG; pictures of layouts; JSON schemas."""
