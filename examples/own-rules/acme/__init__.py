from .checkpoints import load
