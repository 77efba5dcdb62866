"""Tools for authors of rules: examples that run, in every layout, and rules held against the API data."""
