"""`fairlead db` migrates the database that the settings name."""

import pytest
from typer.testing import CliRunner

from fairlead.cli.db import app

pytestmark = pytest.mark.postgres


def run(database: str, *arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, arguments, env={"FAIRLEAD_POSTGRES__URL": database})
    return result.exit_code, result.output.strip()


def test_upgrade_says_from_where_to_where(database: str) -> None:
    """A second upgrade finds the database as it should be."""
    assert run(database, "upgrade") == (0, "empty -> 0001")
    assert run(database, "upgrade") == (0, "0001, as before")


def test_current_fails_on_a_database_that_is_behind(database: str) -> None:
    """Scripts can ask whether an upgrade is due."""
    assert run(database, "current") == (1, "empty; the newest is 0001: run `fairlead db upgrade`")
    run(database, "upgrade")
    assert run(database, "current") == (0, "0001")


def test_check_finds_the_database_in_order(database: str) -> None:
    """Models, migrations and database agree after an upgrade."""
    run(database, "upgrade")
    assert run(database, "check") == (0, "the database is what this version expects")
