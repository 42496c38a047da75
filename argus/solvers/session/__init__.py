"""A session with one solver: normal forms, cached answers and models first, then queries."""
