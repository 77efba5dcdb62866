"""All files of a run, in as many processes as pay off."""
