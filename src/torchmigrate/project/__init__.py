"""What spans files: which names of a file its project needs, and which ones it patches."""
