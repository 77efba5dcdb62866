"""The pages of the documentation that are made from the code: rules, command line, configuration, schemas."""
