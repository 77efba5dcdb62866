"""What finds something: one module for each `finder` of a rule, with a function `find`."""
