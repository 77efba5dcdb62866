import torch


def load(path, map_location=None, weights_only=None):
    """Load a checkpoint from the store of the company."""
    return torch.load(f"/store/{path}", map_location=map_location, weights_only=weights_only)
