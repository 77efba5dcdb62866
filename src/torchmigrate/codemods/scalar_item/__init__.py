"""`x.data[0]` of one number becomes `x.item()`."""
