"""What names mean in a file; only read, never changed."""
