"""For those who write rules: examples that run, in every layout, and rules held against the API data."""
