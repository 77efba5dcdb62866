"""One file in, findings and fixed text out."""
