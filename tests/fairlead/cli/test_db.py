"""`fairlead db` migrates the database that the settings name."""

import pytest
from typer.testing import CliRunner

from fairlead.cli.db import app
from fairlead.store import migrate

pytestmark = pytest.mark.postgres

HEAD = migrate.head()


def run(database: str, *arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, arguments, env={"FAIRLEAD_POSTGRES__URL": database})
    return result.exit_code, result.output.strip()


def test_upgrade_says_from_where_to_where(database: str) -> None:
    """A second upgrade finds the database as it should be."""
    assert run(database, "upgrade") == (0, f"empty -> {HEAD}")
    assert run(database, "upgrade") == (0, f"{HEAD}, as before")


def test_current_fails_on_a_database_that_is_behind(database: str) -> None:
    """Scripts can ask whether an upgrade is due."""
    behind = f"empty; the newest is {HEAD}: run `fairlead db upgrade`"
    assert run(database, "current") == (1, behind)
    run(database, "upgrade")
    assert run(database, "current") == (0, HEAD)


def test_check_finds_the_database_in_order(database: str) -> None:
    """Models, migrations and database agree after an upgrade."""
    run(database, "upgrade")
    assert run(database, "check") == (0, "the database is what this version expects")
