"""What is put into the environment of a recorded program; its own Python finds it as plain modules."""
