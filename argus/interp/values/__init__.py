"""Values and tags in the interpreter: arithmetic, matrix instructions, reductions, and checks of claims."""
