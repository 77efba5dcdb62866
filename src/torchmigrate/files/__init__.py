"""The file system: what is read, what is ignored, which paths belong together, and what ends a run."""
