"""Lightning 1 to 2."""
