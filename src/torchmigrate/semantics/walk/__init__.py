"""One walk through a file, which tells what every name may hold at every place."""
