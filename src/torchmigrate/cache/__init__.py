"""Results of earlier runs, kept in the project, for files that have not changed."""
