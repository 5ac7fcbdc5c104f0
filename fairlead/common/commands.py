"""Commands and SQL to copy and paste, quoted so that no part of a name is run as a command.

Belongs here: quoting, and the command that changes a topic's configuration. Belongs elsewhere:
which commands are offered (`fairlead.surfaces.offers`).

Terminals interpret pasted control characters before the shell reads any quotes: Ctrl-C discards the
line, and a line feed starts a new command. So control characters are written as escapes.
"""

import shlex
from collections.abc import Sequence
from typing import Final

#: Placeholder for a reason. Two words, so that the command has quotes around the placeholder: the
#: user's reason needs quotes as well.
REASON: Final = "your reason"

#: Escapes for the characters that end `$'...'` in a shell, or begin an escape in it.
_SHELL: Final = {"'": "\\'", "\\": "\\\\"}
#: Escapes for the characters that end `E'...'` in Postgres, or begin an escape in it.
_SQL: Final = {"'": "''", "\\": "\\\\"}


def shell_quote(text: str) -> str:
    r"""Quote a word for bash, ksh or zsh; escape control characters and bidirectional marks.

    Parameters
    ----------
    text
        Any text without NUL, which no argument of a program can contain.

    Examples
    --------
    >>> print(shell_quote("orders"), shell_quote("my orders"), shell_quote("pay\x03\n\u202e#"))
    orders 'my orders' $'pay\x03\x0a\xe2\x80\xae#'
    """
    if text.isprintable():
        return shlex.quote(text)
    return "$'" + "".join(map(_in_shell, text)) + "'"


def shell_join(words: list[str]) -> str:
    """Quote the words of a command and join them with blanks."""
    return " ".join(map(shell_quote, words))


def fairlead_command(step: str, *names: str, options: Sequence[str] = ()) -> str:
    """Return a command of Fairlead; if the first name begins with a dash, put `--` before it.

    Examples
    --------
    >>> fairlead_command("unfreeze", "orders", options=["--reason", REASON])
    "fairlead unfreeze orders --reason 'your reason'"
    >>> fairlead_command("plans show", "-orders", "7", options=["--json"])
    'fairlead plans show --json -- -orders 7'
    """
    words = ["fairlead", *step.split()]
    if names and names[0].startswith("-"):
        return shell_join([*words, *options, "--", *names])
    return shell_join([*words, *names, *options])


def sql_literal(text: str) -> str:
    r"""Quote a text for Postgres; escape control characters and bidirectional marks.

    Examples
    --------
    >>> print(sql_literal("o'brien"), sql_literal("pay\x03\n\\"))
    'o''brien' E'pay\u0003\u000a\\'
    """
    if text.isprintable() and "\\" not in text:
        return "'" + text.replace("'", "''") + "'"
    return "E'" + "".join(map(_in_sql, text)) + "'"


def sql_call(function: str, *arguments: str | int) -> str:
    """Return the statement that calls a function of the schema `fairlead`.

    Examples
    --------
    >>> sql_call("reject_plan", "orders", 7, "your reason")
    "SELECT * FROM fairlead.reject_plan('orders', 7, 'your reason');"
    """
    quoted = [
        sql_literal(argument) if isinstance(argument, str) else str(argument)
        for argument in arguments
    ]
    return f"SELECT * FROM fairlead.{function}({', '.join(quoted)});"  # noqa: S608 - quoted


def alter_topic(topic: str, config: str) -> str:
    """Return the command that changes a topic's configuration.

    Examples
    --------
    >>> alter_topic("plans", "compression.type=gzip").partition(" --alter ")[2]
    '--entity-type topics --entity-name plans --add-config compression.type=gzip'
    """
    return (
        "kafka-configs.sh --bootstrap-server BROKER --alter --entity-type topics "
        f"--entity-name {shell_quote(topic)} --add-config {shell_quote(config)}"
    )


def _in_shell(character: str) -> str:
    if character.isprintable():
        return _SHELL.get(character, character)
    # Escape bytes, not characters, because the meaning of \u in bash depends on the locale.
    return "".join(f"\\x{byte:02x}" for byte in character.encode(errors="surrogatepass"))


def _in_sql(character: str) -> str:
    if character.isprintable():
        return _SQL.get(character, character)
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"  # noqa: PLR2004
