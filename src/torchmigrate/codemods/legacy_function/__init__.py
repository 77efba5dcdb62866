"""Autograd functions get static methods and a context."""
