"""Sessions with one solver: normal forms, cached answers and earlier models first, then queries."""
