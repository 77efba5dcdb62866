"""Files that are not Python: commands, pins, C++; what is found in them by rules, and comments in them."""
