"""Codemods of one module each."""
