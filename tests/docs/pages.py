"""Pages of docs/ whose examples are run: `python -m tests.docs.pages` writes their output anew.

A ```sql block is followed by a ```text block, its result; a ```console block begins with
`$ fairlead ...` and holds what that prints. All run in the order of the page, on a database of its
own that holds the week of `scenario`.
Belongs here: finding the examples and running them. Does not: what they ask.
"""

import os
import re
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import psycopg
from psycopg import sql
from typer.testing import CliRunner

from fairlead.cli import app
from fairlead.errors import FairleadError
from fairlead.sandbox import Sandbox
from tests.docs.scenario import store_week

DOCS: Final = Path(__file__).parents[2] / "docs"
PAGES: Final = ("sql.md", "command-line.md")
_EXAMPLE: Final = re.compile(
    r"```sql\n(?P<query>.*?)```\n\n```text\n.*?```"
    r"|```console\n\$ fairlead (?P<command>[^\n]*)\n.*?```",
    re.DOTALL,
)


def rewritten(page: str, url: str) -> str:
    """Return a page with the output of all its examples, run on an empty database."""
    store_week(url)
    options = "-c timezone=UTC -c role=fairlead_reader"  # queries need no other right than to read
    with psycopg.connect(url, autocommit=True, options=options) as connection:

        def run(example: re.Match[str]) -> str:
            query, command = example["query"], example["command"]
            if query is not None:
                return f"```sql\n{query}```\n\n```text\n{answer(connection, query)}```"
            return f"```console\n$ fairlead {command}\n{output(command, url)}```"

        return _EXAMPLE.sub(run, page)


def answer(connection: psycopg.Connection, query: str) -> str:
    """Return a query's rows as an aligned table."""
    cursor = connection.execute(query.encode())
    assert cursor.description is not None
    rows = [[_text(value) for value in row] for row in cursor]
    return _aligned([column.name for column in cursor.description], rows)


def output(command: str, url: str) -> str:
    """Return what a command prints; an error of ours as `main` would print it."""
    result = CliRunner().invoke(
        app,
        shlex.split(command),
        env={
            "FAIRLEAD_POSTGRES__URL": url,
            "FAIRLEAD_CONFIG": str(Path(__file__).with_name("fairlead.toml")),
        },
    )
    ours = isinstance(result.exception, FairleadError)
    error = f"fairlead: {result.exception}\n" if ours else ""
    shown = f"{result.output}{error}"
    return "".join(f"{line.rstrip()}\n" for line in shown.splitlines())


def _text(value: object) -> str:
    return "" if value is None else str(value).removesuffix("+00:00")


def _aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [
        " | ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in (head, *rows)
    ]
    lines.insert(1, "-+-".join("-" * width for width in widths))
    return "".join(f"{line}\n" for line in lines)


def main() -> None:
    """Write the pages anew, on a Postgres started for it."""
    os.environ["FAIRLEAD_CONFIG"] = os.devnull
    with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
        sandbox = Sandbox(Path(folder))
        sandbox.start()
        try:
            services = sandbox.running()
            assert services is not None
            for name in PAGES:
                database = Path(name).stem.replace("-", "_")
                with psycopg.connect(services.postgres_url, autocommit=True) as connection:
                    connection.execute(
                        sql.SQL("CREATE DATABASE {}").format(sql.Identifier(database))
                    )
                url = urlsplit(services.postgres_url)._replace(path=f"/{database}").geturl()
                page = DOCS / name
                page.write_text(rewritten(page.read_text(), url))
        finally:
            sandbox.stop()


if __name__ == "__main__":
    main()
