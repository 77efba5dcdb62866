"""Old code on the old releases that it was written for; see CONTRIBUTING.md, "Old releases".

`plain.py`, `compare.py` and `runner.py` are run by the Pythons of those releases, 3.7 or newer, and import nothing
but torch and what comes with it.
"""
