"""Reports for people and programs: text, JSON, SARIF, SVG; pictures of layouts; the schemas."""
