"""Volatile variables become torch.no_grad()."""
