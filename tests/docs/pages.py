"""Run the examples on documentation pages; `python -m tests.docs.pages` updates their output.

The language of a fenced block determines the check:

- sql: it is run on the page's own database with the week of `scenario`. If a text block follows
  directly, this block is the query's result, and the query is run with the rights of
  `fairlead_reader`. Changes are rolled back.
- console: `$ fairlead ...` or `$ echo '...' | fairlead ...` is run with the same database. Its
  output must follow.
- sh: each command must exist and accept its options (`commands`), like commands in inline code.
- python: it must compile, and its imports must exist. If it begins with a docstring, it is run.
- pycon: it is run as a doctest. It can use names from python blocks that were run before it.
- java: it must create an object of one of our classes. `tests/jvm` runs the same lines.
- toml: valid settings. properties: each line sets a value. json, yaml: valid syntax. text: the
  output of a program.

Belongs here: running examples. Belongs elsewhere: finding blocks (`blocks`), and the data of
examples (`scenario`).
"""

import ast
import doctest
import importlib
import json
import os
import re
import shlex
import tempfile
from collections.abc import Callable, Sequence
from contextlib import chdir
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import psycopg
import yaml
from psycopg import sql
from typer.testing import CliRunner

from fairlead.errors import FairleadError
from fairlead.sandbox.postgres import Postgres
from fairlead.settings import load_settings
from fairlead.surfaces.cli import app
from tests.docs.blocks import Block, blocks, commands_in_sentences, name_of, pages, replaced
from tests.docs.commands import check_script
from tests.docs.scenario import store_week

_CONSOLE: Final = re.compile(r"\$ (?:echo '(?P<input>[^']*)' \| )?fairlead (?P<command>[^\n]*)\n")
_JAVA: Final = Path(__file__).parents[2] / "jvm/src/main/java/fairlead/kafka"
_READER: Final = "-c timezone=UTC -c role=fairlead_reader -c extra_float_digits=-10"


class Runner:
    """Runs the examples of one page.

    Parameters
    ----------
    page
        The page's text.
    week
        Function that creates a database with the week of `scenario` and returns its URL. The first
        example that needs the database calls it.
    """

    def __init__(self, page: str, week: Callable[[], str]) -> None:
        self._page = page
        self._week = week
        self._names: dict[str, Any] = {}
        self._new: dict[Block, str] = {}
        self._results: dict[Block, Block] = {}

    def rewritten(self) -> str:
        """Run all examples in order, and return the page with their current output.

        Raises
        ------
        AssertionError
            An example is wrong, or has an unknown language. The message has the line number.
        """
        found = list(blocks(self._page))
        for query, result in pairwise(found):
            between = self._page[query.end : result.start]
            if (query.language, result.language) == ("sql", "text") and not between.strip(
                "`tex\n "
            ):
                self._results[query] = result
        for block in found:
            run = getattr(self, f"_run_{block.language or 'nothing'}", None)
            assert run, f"line {block.line}: nothing runs blocks of the language {block.language!r}"
            try:
                run(block)
            except Exception as error:
                raise AssertionError(f"line {block.line}: {error}\n{block.code}") from error
        for command in commands_in_sentences(self._page):
            check_script(command)
        return replaced(self._page, self._new)

    @cached_property
    def _database(self) -> str:
        return self._week()

    def _run_sql(self, block: Block) -> None:
        result = self._results.get(block)
        with psycopg.connect(self._database, options=_READER if result else None) as connection:
            cursor = connection.execute(block.code.encode())
            if result:
                self._new[result] = answer(cursor)
            connection.rollback()

    def _run_console(self, block: Block) -> None:
        match = _CONSOLE.match(block.code)
        assert match, "it does not begin with `$ fairlead ...`"
        self._new[block] = match[0] + output(match["command"], match["input"], self._database)

    def _run_sh(self, block: Block) -> None:
        check_script(block.code)

    def _run_python(self, block: Block) -> None:
        tree = ast.parse(block.code)
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for name in node.names:
                    importlib.import_module(name.name)
            elif isinstance(node, ast.ImportFrom):
                module = importlib.import_module(node.module or "")
                for name in node.names:
                    assert hasattr(module, name.name), f"{node.module} has no {name.name}"
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT  # asyncio examples await at the top level
        code = compile(block.code, "<page>", "exec", flags=flags)
        if ast.get_docstring(tree):
            exec(code, self._names)  # noqa: S102 - a module of ours

    def _run_pycon(self, block: Block) -> None:
        test = doctest.DocTestParser().get_doctest(
            block.code, self._names, "page", None, block.line
        )
        report: list[str] = []
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
        runner.run(test, out=report.append, clear_globs=False)
        self._names = test.globs
        assert not report, "".join(report)

    def _run_java(self, block: Block) -> None:
        made = re.findall(r"\bnew (\w+)<", block.code)
        assert any((_JAVA / f"{name}.java").exists() for name in made), made

    def _run_toml(self, block: Block) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(block.code)
            file.flush()
            with patch.dict(os.environ, {"FAIRLEAD_CONFIG": file.name}):
                load_settings()

    def _run_properties(self, block: Block) -> None:
        for line in block.code.splitlines():
            assert re.fullmatch(r"[a-z.]+=\S+", line), line

    def _run_json(self, block: Block) -> None:
        json.loads(block.code)

    def _run_yaml(self, block: Block) -> None:
        list(yaml.safe_load_all(block.code))

    def _run_text(self, block: Block) -> None:
        assert not block.code.startswith("$ "), "a command and its output make a `console` block"


def answer(cursor: psycopg.Cursor) -> str:
    """Return a query's rows as a text table with aligned columns."""
    assert cursor.description is not None
    rows = [[_text(value) for value in row] for row in cursor]
    return _aligned([column.name for column in cursor.description], rows)


def output(command: str, given: str | None, url: str) -> str:
    """Run a command and return its output, and its error message if it fails with FairleadError."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):  # commands may write files
        result = CliRunner().invoke(
            app,
            shlex.split(command),
            input=given,
            env={
                "FAIRLEAD_POSTGRES__URL": url,
                "FAIRLEAD_CONFIG": str(Path(__file__).with_name("fairlead.toml")),
            },
        )
    ours = isinstance(result.exception, FairleadError)
    error = f"fairlead: {result.exception}\n" if ours else ""
    text = f"{result.output}{error}"
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


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
    """Start Postgres, run the examples of all pages, and rewrite the pages with their output."""
    os.environ["FAIRLEAD_CONFIG"] = os.devnull
    with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
        postgres = Postgres(Path(folder))
        postgres.start()
        try:
            store_week(postgres.url("fairlead"))
            for number, path in enumerate(pages()):

                def week(name: str = f"page_{number}") -> str:
                    with psycopg.connect(postgres.url("postgres"), autocommit=True) as connection:
                        connection.execute(
                            sql.SQL("CREATE DATABASE {} TEMPLATE fairlead").format(
                                sql.Identifier(name)
                            )
                        )
                    return postgres.url(name)

                try:
                    path.write_text(Runner(path.read_text(), week).rewritten())
                except AssertionError as error:
                    print(f"{name_of(path)}: {error}")  # noqa: T201 - this is a command
        finally:
            postgres.stop()


if __name__ == "__main__":
    main()
