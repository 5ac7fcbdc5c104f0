"""Quoting of names in printed commands and SQL, so that names cannot inject commands."""

import subprocess

import psycopg
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairlead.common.commands import shell_join, shell_quote, sql_literal
from fairlead.sandbox import Services

#: Characters with an effect in terminals, shells or Postgres.
ODD = "\x03\x04\x15\x1a\x1b\r\n\t\x7f\x9b\u202e\u2028\U000e0001'\"\\$`!~#%xu0"
CHARACTERS = st.sampled_from(ODD) | st.characters(codec="utf-8", exclude_characters="\0")
NAMES = st.lists(st.text(CHARACTERS), min_size=1, max_size=30)


@given(NAMES)
@example(["pay\x03\ntouch X\n#", "", "-n", "a\\", "\x1b1", "\u202e\\'"])
@settings(max_examples=50, deadline=None)
def test_bash_reads_quoted_names_unchanged(names: list[str]) -> None:
    """Bash reads back any quoted name, and the quoted text has no control characters."""
    words = shell_join(names)
    assert words.isprintable()
    answer = subprocess.check_output(["/bin/bash", "-c", f"printf '%s\\0' {words}"])
    assert answer == b"".join(name.encode() + b"\0" for name in names)


def test_printable_names_are_quoted_for_any_shell() -> None:
    """Printable names, in any alphabet, are quoted for any shell; others for bash, ksh and zsh."""
    assert shell_join(["orders", "my orders", "größe 東京", "o'b"]) == (
        "orders 'my orders' 'größe 東京' 'o'\"'\"'b'"
    )
    assert shell_quote("a\u202eb") == r"$'a\xe2\x80\xaeb'"


@pytest.mark.postgres
def test_postgres_reads_quoted_names_unchanged(services: Services) -> None:
    """Postgres reads back any quoted name, and the literal has no control characters."""
    with psycopg.connect(services.postgres_url) as connection:

        @given(NAMES)
        @example(["pay\x03\n\\! touch X\n--", "o'b", "\\", "\\'", "\x031", "\U000e0001f"])
        @settings(max_examples=50, deadline=None)
        def read_back(names: list[str]) -> None:
            literals = ", ".join(map(sql_literal, names))
            assert literals.isprintable()
            row = connection.execute(f"SELECT ARRAY[{literals}]".encode()).fetchone()
            assert row == (names,)

        read_back()
