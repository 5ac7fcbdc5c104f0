"""Bounds that several parts must agree on.

Belongs here: numbers that need no import, for commands that start fast. Does not: what one part
alone bounds.
"""

from typing import Final

#: The last version a plan can have: Postgres's largest integer.
LAST_VERSION: Final = 2**31 - 1
