"""Where in a TOML file a key is: errors in settings name the line.

Belongs here: finding lines, and errors that know their key. Does not: what keys mean (`settings`).
"""

import tomllib
from collections.abc import Sequence
from typing import Any


class WrongAt(ValueError):  # noqa: N818 - what it is called by those who raise it, not its kind
    """A value that is wrong at a key below the one being validated.

    Parameters
    ----------
    message
        What is wrong.
    keys
        The way down from the table being validated.
    """

    def __init__(self, message: str, *keys: str) -> None:
        super().__init__(message)
        self.keys = keys


def line_of(text: str, keys: Sequence[str | int]) -> int | None:
    r"""Return the line of the statement that first sets a key, counted from 1.

    Parameters
    ----------
    text
        A TOML document that parses.
    keys
        The way down to the key; numbers are places in arrays, from 0. Where the document ends
        sooner, the last key that it has counts.

    Returns
    -------
    None where the document has not even the first key.

    Notes
    -----
    TOML defines nothing twice: a key is there from the line on which the statement that sets it
    ends. So the document is read line by line, and what parses anew begins after what parsed
    before. Quadratic: 700 lines take 0.8 s, once, when something is wrong with them.

    Examples
    --------
    >>> line_of("a = 1\n\n[[b]]\nc = [\n  2,\n]\n", ["b", 0, "c"])
    4
    >>> line_of("[[b]]\n[[b]]\n", ["b", 1, "missing"])
    2
    """
    lines = text.split("\n")
    while keys and _find(tomllib.loads(text), keys) is _MISSING:
        keys = keys[:-1]
    if not keys:
        return None
    start = 0
    for end in range(1, len(lines) + 1):
        try:
            document = tomllib.loads("\n".join(lines[:end]))
        except tomllib.TOMLDecodeError:  # inside a value of several lines
            continue
        if _find(document, keys) is not _MISSING:
            break
        start = end
    return start + 1


_MISSING = object()


def _find(document: Any, keys: Sequence[str | int]) -> Any:
    for key in keys:
        try:
            document = document[key]
        except (KeyError, IndexError, TypeError):
            return _MISSING
    return document
