"""The language server: what `check` finds, while one types, in any editor that speaks the protocol."""
