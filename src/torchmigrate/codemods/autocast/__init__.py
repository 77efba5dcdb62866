"""Regions of mixed precision, and what stands in them."""
