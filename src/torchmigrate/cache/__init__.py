"""What earlier runs found, kept beside the project: results of files that are as they were."""
