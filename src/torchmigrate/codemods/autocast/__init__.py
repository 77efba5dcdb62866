"""Regions of mixed precision, and the code in them."""
