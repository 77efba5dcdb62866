"""A verified upgrade: groups of fixes are commits, and what breaks a test of the project is taken back."""
