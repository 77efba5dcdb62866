"""One text: its characters, encodings, lines and syntax trees."""
