"""Whether working code still works after its safe fixes: every name of the installed libraries, used and run."""
