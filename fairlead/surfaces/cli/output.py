"""How commands answer: lines and tables for people, one JSON document for programs.

Belongs here: what every answer has in common; whatever a person reads goes through here, and so
through `visible`. Does not: which columns a command shows.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import typer

from fairlead.common.visible import visible

#: How wide a table may get where nobody's window limits it: in a pipe or a file.
_WIDTH_OF_A_FILE: Final = 200
_EXIT_CODES: Final = "Exit codes: 0 done; 1 an error, named by one line on standard error; 2 usage."


def epilog(*examples: str) -> str:
    """Return the end of a command's help: examples, and what its exit codes mean."""
    shown = "\n\n".join(f"$ fairlead {example}" for example in examples)
    return f"Examples:\n\n{shown}\n\n{_EXIT_CODES}"


def say(*lines: str, err: bool = False) -> None:
    """Print lines for people: whatever a name or a reason holds, they stay lines."""
    for line in lines:
        typer.echo(visible(line), err=err)


def say_error(error: Exception, what: str = "") -> None:
    """Say on standard error what went wrong, in one line unless a log's end is part of it."""
    from fairlead.errors import SandboxError

    keep = "\n" if isinstance(error, SandboxError) else ""
    typer.echo(visible(f"fairlead: {what}{error}", keep=keep), err=True)


def print_json(document: Any) -> None:
    """Print a document: times in ISO 8601, exact numbers as numbers."""
    typer.echo(json.dumps(document, default=_plain, ensure_ascii=False))


def print_table(
    rows: Sequence[Mapping[str, Any]],
    columns: Mapping[str, str] | Iterable[str],
    *,
    title: str | None = None,
    stderr: bool = False,
) -> None:
    """Print rows as a table.

    Parameters
    ----------
    rows
        Keys to values; numbers are aligned right.
    columns
        Keys to headings, or keys alone, in the order wanted.
    title
        Printed above.
    stderr
        Whether standard output belongs to a program.
    """
    from rich.table import Table

    headings = dict(columns) if isinstance(columns, Mapping) else {key: key for key in columns}
    table = Table(title=title and visible(title), title_justify="left")
    for key, heading in headings.items():
        numbers = any(isinstance(row[key], int | float | Decimal) for row in rows)
        table.add_column(heading, justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_cell(row[key]) for key in headings))
    print_rich(table, stderr=stderr)


def print_rich(renderable: Any, *, stderr: bool = False) -> None:
    """Print what rich can show; text is not read as markup: names may hold brackets."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _WIDTH_OF_A_FILE
    Console(stderr=stderr, width=width, highlight=False).print(_Visible(renderable), markup=False)


class _Visible:
    """Something that rich can show, with what it holds made visible, but not rich's own colours."""

    def __init__(self, renderable: Any) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        from rich.segment import Segment

        for segment in console.render(self._renderable, options):
            text = visible(segment.text, keep="\n")
            yield segment if segment.control else Segment(text, segment.style)


def _cell(value: Any) -> Any:
    from rich.text import Text

    return Text(visible(as_text(value)))


def as_text(value: Any) -> str:
    """Return a value as people read it; moments in UTC, whatever zone the session is in.

    Examples
    --------
    >>> [as_text(value) for value in (None, 1234567, 0.25, True)]
    ['', '1,234,567', '0.25', 'yes']
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float | Decimal):
        return f"{value:,.3f}".rstrip("0").rstrip(".")
    return str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")
