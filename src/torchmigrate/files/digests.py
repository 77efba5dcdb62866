"""Digests of the content of files."""

from __future__ import annotations

try:  # `hashlib` loads OpenSSL first, for a tenth of the time of a short run
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

__all__ = ["blake2b", "digest_of"]


def digest_of(data: bytes) -> bytes:
    """16 bytes that no other content has."""
    return blake2b(data, digest_size=16).digest()
