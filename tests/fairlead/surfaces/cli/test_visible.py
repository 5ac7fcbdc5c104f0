"""Group names and reasons can neither control a terminal nor forge a line of a log."""

import io
import json
import logging
import sys
import unicodedata
from contextlib import redirect_stderr, redirect_stdout

import psycopg
import pytest
from typer.testing import CliRunner

from fairlead.common.visible import VisibleFormatter, visible
from fairlead.errors import GroupError
from fairlead.surfaces.cli import app
from fairlead.surfaces.cli.output import print_table, say, say_error

EVIL = "\x1b[2J\x1b]0;title\x07or\u202eders\r\nbilling: fine\x9b31m\u2028\u200b\u2066"


def hidden(text: str) -> set[str]:
    """Return the invisible characters of a text, except line feeds."""
    return {
        character
        for character in text
        if unicodedata.category(character) in {"Cc", "Cf", "Zl", "Zp"}
    } - {"\n"}


def test_invisible_characters_are_escaped() -> None:
    """Invisible characters become Python's escapes; line feeds do, too, unless `keep` is given."""
    assert visible("a\x1b\x9b\u202e\ud800\n\U000e0001") == r"a\x1b\x9b\u202e\ud800\n\U000e0001"
    assert visible("a\nb\x00", keep="\n") == "a\nb\\x00"


def test_long_line_is_cut() -> None:
    """The middle of a very long line is cut out; other lines are unchanged.

    A client id may have 32,000 characters.
    """
    text = f"first\na{'x' * 32_000}z\nlast"
    first, long, last = visible(text, keep="\n").split("\n")
    assert (first, last, long[0], long[-1]) == ("first", "last", "a", "z")
    assert len(long) < 6_000
    assert "32,002 characters" in long


def test_all_output_is_visible() -> None:
    """Printed lines, tables with their titles, and errors contain no invisible characters."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        say(f"group {EVIL}", EVIL)
        print_table([{"name": EVIL, "lag": 1}], {"name": "name", "lag": "lag"}, title=EVIL)
        say_error(GroupError(EVIL))
    assert hidden(out.getvalue()) | hidden(err.getvalue()) == set()
    assert out.getvalue().startswith(f"group {visible(EVIL)}\n{visible(EVIL)}\n")
    assert err.getvalue() == f"fairlead: {visible(EVIL)}\n"


def test_a_record_of_the_log_is_a_line() -> None:
    """A log message is written on one line; a traceback may have several."""
    try:
        raise ValueError(EVIL)  # noqa: TRY301 - for its traceback
    except ValueError:
        record = logging.LogRecord("web", 40, "", 0, "%s: no", (EVIL,), sys.exc_info())
    first, *traceback = VisibleFormatter("%(name)s %(message)s").format(record).splitlines()
    assert first == f"web {visible(EVIL)}: no"
    assert traceback[0].startswith("Traceback")
    assert hidden("\n".join(traceback)) == set()


@pytest.mark.postgres
def test_output_of_every_command_is_visible(week: str) -> None:
    """No command prints the invisible characters in a group's name or in a reason."""
    with psycopg.connect(week) as connection:
        connection.execute("SET session_replication_role = replica")
        tables = ("consumer_group", "decision", "plan", "plan_event")
        for table in tables:
            connection.execute(
                f"UPDATE fairlead_raw.{table} SET group_id = %s WHERE group_id = 'orders'".encode(),
                (EVIL,),
            )
        for table in ("decision", "plan_event"):
            connection.execute(f"UPDATE fairlead_raw.{table} SET reason = %s".encode(), (EVIL,))

    def answer(*words: str) -> str:
        environment = {"FAIRLEAD_POSTGRES__URL": week}
        result = CliRunner().invoke(app, words, env=environment)
        assert result.exit_code == 0, result.output
        return result.output

    for words in (
        ("groups",),
        ("history", EVIL),
        ("history", EVIL, "--since", "2100-01-01"),
        ("plans", "list", EVIL),
        ("plans", "list", EVIL, "--state", "expired"),
        ("plans", "show", EVIL, "2"),
        ("plans", "diff", EVIL, "1", "3"),
        ("plans", "diff", EVIL, "1", "1"),
        ("policy", "explain", EVIL),
    ):
        done = answer(*words)
        assert hidden(done) == set(), words
        assert "\nbilling: fine" not in done
    groups, history = answer("groups", "--json"), answer("history", EVIL, "--json")
    assert hidden(groups) | hidden(history) == set()
    assert EVIL in {row["group"] for row in json.loads(groups)}
    assert {row["reason"] for row in json.loads(history)} == {EVIL}
