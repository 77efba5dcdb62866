"""torchmigrate: find and rewrite outdated PyTorch code."""

__version__ = "0.1.0"
