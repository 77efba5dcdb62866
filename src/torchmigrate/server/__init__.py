"""The language server: findings and fixes of `check`, live, in any editor that supports the protocol."""
