"""From what is found to edits, and from edits to files: the only room that changes code."""
