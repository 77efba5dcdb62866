"""What codemods share."""
