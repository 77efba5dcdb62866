"""Where names are mentioned, what a read may see, and what is around a node."""
