"""Old code against new code, executed on real torch."""
