"""What a name means at a place: scopes, imports, values, guards."""
