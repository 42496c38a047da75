"""How the DSL chooses the instruction of a copy."""
