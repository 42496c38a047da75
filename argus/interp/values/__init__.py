"""Values and tags: arithmetic, matrix instructions, reductions, and the claims judged on them."""
