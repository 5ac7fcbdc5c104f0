"""Text of others made safe to show in a terminal or a log.

Belongs here: which characters are written as escapes. Does not: where they are shown (the command
line's `output`, pages), nor JSON, which has escapes of its own.
"""

import logging
import unicodedata
from typing import Any, Final

#: Controls (terminal escapes among them), formats (bidi overrides, zero width), lone surrogates,
#: and what Unicode ends lines and paragraphs with.
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
#: Characters of a line. A command that names a group has fewer, even if each byte of the longest
#: group id is an escape.
_LONGEST: Final = 5_000


def visible(text: str, *, keep: str = "") -> str:
    r"""Write as escapes what would not be seen, or would change how the rest is; cut long lines.

    Names of groups, clients and topics, and reasons, hold whatever somebody gave them: colours, a
    second line that looks like ours, letters in another order.

    Parameters
    ----------
    text
        Anything.
    keep
        Characters that stay, such as a line feed where there are several lines.

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
    """Cut a line in its middle."""
    if len(line) <= _LONGEST:
        return line
    half = _LONGEST // 2
    return f"{line[:half]}... ({len(line):,} characters) ...{line[-half:]}"


def on_page(value: object) -> object:
    """Return what a page writes of a value: of a text what can be seen, in its order.

    For `finalize` of a Jinja environment, which escapes for HTML afterwards what is not HTML yet.
    """
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    return visible(value, keep="\n")


class VisibleFormatter(logging.Formatter):
    """Formats records in a line each, whatever is in them; tracebacks keep theirs."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """Return the record's own line."""
        return visible(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the same
        """Return the traceback."""
        return visible(super().formatException(ei), keep="\n")
