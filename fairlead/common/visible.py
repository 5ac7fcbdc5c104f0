"""Escaping text from outside, such as names of groups, for terminals, logs and pages.

Belongs here: escaping characters. Belongs elsewhere: writing output (`fairlead.surfaces`), and
JSON, which has its own escapes.
"""

import logging
import unicodedata
from typing import Any, Final

#: Unicode categories of escaped characters: control characters (such as terminal escapes), format
#: characters (bidirectional overrides, zero width), surrogates, line and paragraph separators.
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
#: Maximum length of a line. A command with the longest possible group id fits, even if every byte
#: of the id is escaped.
_LONGEST: Final = 5_000


def visible(text: str, *, keep: str = "") -> str:
    r"""Escape characters that are invisible or change other text; shorten long lines.

    Names of groups and clients can contain anything: terminal colours, a second line that looks
    like Fairlead's own, or characters that reverse the text.

    Parameters
    ----------
    text
        Any text.
    keep
        Characters to keep, such as line feeds.

    Examples
    --------
    >>> print(visible("\x1b[31morders\n\u202eevil"), visible("Bestellungen für 東京 🚀"))
    \x1b[31morders\n\u202eevil Bestellungen für 東京 🚀
    """
    if text.isascii() and text.isprintable() and len(text) <= _LONGEST:
        return text
    escaped = "".join(
        character.encode("unicode_escape").decode()
        if character not in keep and unicodedata.category(character) in _HIDDEN
        else character
        for character in text
    )
    if len(escaped) <= _LONGEST:
        return escaped
    return "\n".join(map(_cut, escaped.split("\n")))


def _cut(line: str) -> str:
    """Leave out the middle of a line that is too long."""
    if len(line) <= _LONGEST:
        return line
    half = _LONGEST // 2
    return f"{line[:half]}... ({len(line):,} characters) ...{line[-half:]}"


def on_page(value: object) -> object:
    """Return a value for a page; if it is a text, escape its invisible characters.

    Pass this function as `finalize` to a Jinja environment, which escapes HTML afterwards.
    """
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    return visible(value, keep="\n")


class VisibleFormatter(logging.Formatter):
    """Formats log records as one line with escaped characters; tracebacks keep line breaks."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """Return the line without the traceback."""
        return visible(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name
        """Return the traceback."""
        return visible(super().formatException(ei), keep="\n")
