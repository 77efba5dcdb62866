"""What torch.load may read."""
