"""Under which tests for a release or a name a place runs."""
