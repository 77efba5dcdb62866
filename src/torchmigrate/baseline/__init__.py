"""Findings that a project has accepted: what the file holds, what it hides, and how it shrinks."""
