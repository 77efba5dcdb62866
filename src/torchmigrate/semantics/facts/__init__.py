"""What follows from names and values: dtypes, sparse tensors, defaults, what is around a place."""
