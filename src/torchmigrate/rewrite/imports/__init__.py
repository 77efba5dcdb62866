"""Imports that are added, swapped and removed."""
