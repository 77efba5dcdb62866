"""Attention written by hand becomes scaled_dot_product_attention."""
