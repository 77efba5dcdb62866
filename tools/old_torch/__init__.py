"""Old code on the old releases that it was written for; see docs/develop/old-releases.md.

`runner.py`, `execute.py`, `plain.py`, `compare.py` and `companions.py` are run by the Pythons of those
releases, 3.7 or newer, and import nothing but torch and what comes with it.
"""
