"""Output of commands: lines and tables for people, one JSON document for programs.

Belongs here: the formats that all commands share. All text for people is printed from here, so that
`visible` makes it safe for terminals. Belongs elsewhere: the columns of a command.
"""

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import typer

from fairlead.common.visible import visible
from fairlead.common.words import as_text
from fairlead.domain.figures import Figure, figure

#: Width of a table in a pipe or a file, unless COLUMNS is set.
_WIDTH_OF_A_FILE: Final = 80
#: Minimum width to which a column of several words is wrapped.
_LEAST_WIDTH: Final = 20
#: Characters between two columns.
_BETWEEN: Final = 2
_EXIT_CODES: Final = (
    "Exit codes: 0 done; 1 error, in one line on standard error; 2 invalid command or option."
)


def epilog(*examples: str) -> str:
    """Return the end of a command's help: examples, and the meaning of its exit codes."""
    text = "\n\n".join(f"$ fairlead {example}" for example in examples)
    return f"Examples:\n\n{text}\n\n{_EXIT_CODES}"


def say(*lines: str, err: bool = False) -> None:
    """Print lines for people; line breaks within a line are escaped."""
    for line in lines:
        typer.echo(visible(line), err=err)


def say_error(error: Exception, what: str = "") -> None:
    """Print an error to standard error, in one line unless it quotes a service's log."""
    from fairlead.errors import SandboxError

    keep = "\n" if isinstance(error, SandboxError) else ""
    typer.echo(visible(f"fairlead: {what}{error}", keep=keep), err=True)


def print_json(document: Any) -> None:
    """Print a JSON document in ASCII, with times in ISO 8601, and decimals as numbers."""
    typer.echo(json.dumps(document, default=_plain))


def print_result(document: Mapping[str, Any], sentence: str, *, as_json: bool) -> None:
    """Print the result of a command, as JSON or as a sentence."""
    if as_json:
        print_json(document)
    else:
        say(sentence)


def print_table(
    rows: Sequence[Mapping[str, Any]],
    columns: Mapping[str, str] | Iterable[str],
    *,
    title: str | None = None,
    stderr: bool = False,
) -> None:
    """Print rows as a table or, if it is wider than the window, as one block per row.

    Names and numbers are never broken across lines, so that they can be copied.

    Parameters
    ----------
    rows
        Each maps keys to values; numbers are aligned right.
    columns
        Keys in the order of the columns, or a map from keys to headings. A key without a heading
        gets the label of the figure with this name or, if there is none, the key as its heading.
    title
        Heading of the table.
    stderr
        Print to standard error, because a program reads standard output.
    """
    from rich.box import SIMPLE_HEAD
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    headings = columns if isinstance(columns, Mapping) else dict.fromkeys(columns, "")
    headings = {
        key: heading or (known.label.lower() if (known := _figure(key)) else key)
        for key, heading in headings.items()
    }
    console = _console(stderr=stderr)
    table = Table(
        title=title and Text(visible(title)),  # rich would read a str as markup
        title_justify="left",
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    least = -_BETWEEN
    for key, heading in headings.items():
        texts = [heading, *(visible(_text_of(key, row[key])) for row in rows)]
        width = max(map(cell_len, texts))
        if width > _LEAST_WIDTH and any(" " in text for text in texts):
            width = max(_LEAST_WIDTH, *(cell_len(word) for text in texts for word in text.split()))
        numbers = any(isinstance(row[key], int | float | Decimal) for row in rows)
        table.add_column(heading, justify="right" if numbers else "left", min_width=width)
        least += width + _BETWEEN
    for row in rows:
        table.add_row(*(_cell(key, row[key]) for key in headings))
    fits = least <= console.width
    console.print(table if fits else _blocks(rows, headings, title), markup=False, crop=False)


def _blocks(rows: Sequence[Mapping[str, Any]], headings: Mapping[str, str], title: Any) -> Any:
    """Return rows as blocks with one value per line."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    parts: list[Any] = [Text(visible(title))] if title else []
    for row in rows:
        block = Table.grid(padding=(0, 1))
        block.add_column(no_wrap=True)
        block.add_column(overflow="fold")
        for key, heading in headings.items():
            if row[key] is not None:
                block.add_row(heading, _cell(key, row[key]))
        parts += [block, Text()]
    return Group(*parts)


def _console(*, stderr: bool) -> Any:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else _WIDTH_OF_A_FILE
    return Console(stderr=stderr, width=width, highlight=False)


def _figure(key: str) -> Figure | None:
    with suppress(KeyError):
        return figure(key)
    return None


def _text_of(key: str, value: Any) -> str:
    """Return a value as text; empty for None."""
    known = None if value is None else _figure(key)
    return as_text(value) if known is None else known.text(value)


def _cell(key: str, value: Any) -> Any:
    from rich.text import Text

    return Text(visible(_text_of(key, value)))


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not a JSON value")
