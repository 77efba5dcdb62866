"""Code of tests, other than the examples of rules, that has recordings of old releases."""

from __future__ import annotations

from collections.abc import Mapping

Case = tuple[str, str, Mapping[str, str], bool]  # before, after, inputs, whether gradients are compared


def cases() -> dict[str, Case]:
    """Every such code by its name."""
    return {}
