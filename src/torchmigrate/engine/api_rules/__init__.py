"""Rules made from the API data: names and arguments that a release does not have."""
