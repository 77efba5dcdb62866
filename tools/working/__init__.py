"""Whether working code still works after its safe fixes: names of the installed libraries, used and run."""
