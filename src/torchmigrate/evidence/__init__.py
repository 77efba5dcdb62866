"""What was seen while a project ran: recorded by `inject/` in its own Python, read by the analysis."""
