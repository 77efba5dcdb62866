"""Reading what a library offers from the sources in its wheel, without importing them."""
