"""What the YAML cases of a rule make of a call, a name or a decorator."""
