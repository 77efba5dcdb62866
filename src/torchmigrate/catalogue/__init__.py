"""Loading, checking and compiling the rules."""
