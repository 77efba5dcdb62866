"""Functional models of functorch become torch.func."""
