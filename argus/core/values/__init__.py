"""What a cell holds, as an expression over the elements of tensors, and when two such expressions are equal."""
