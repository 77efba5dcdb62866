"""Settings: where they come from, and which rules they select."""
