"""Flags and names of pretrained models become weights."""
