"""Drafts of rules for a new release, made from the API data: what `tools/new_release.py` writes."""
