"""`fairlead db` upgrades, opens and prunes the configured database."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from typer.testing import CliRunner

from fairlead.store import migrate
from fairlead.surfaces.cli.db import app
from tests.programs import FAIRLEAD, ended

pytestmark = pytest.mark.postgres

HEAD = migrate.head()


def run(database: str, *arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, arguments, env={"FAIRLEAD_POSTGRES__URL": database})
    return result.exit_code, result.output.strip()


def test_upgrade_prints_both_revisions(database: str) -> None:
    """An upgrade prints the revisions before and after; a second upgrade changes nothing."""
    assert run(database, "upgrade") == (0, f"empty -> {HEAD}")
    assert run(database, "upgrade") == (0, f"{HEAD}, unchanged")


def test_current_fails_on_an_older_schema(database: str) -> None:
    """The exit code is 1 until the schema is upgraded, so scripts can detect an old schema."""
    behind = f"empty; the newest is {HEAD}: run `fairlead db upgrade`"
    assert run(database, "current") == (1, behind)
    run(database, "upgrade")
    assert run(database, "current") == (0, HEAD)


def test_psql_opens_the_database_of_the_settings(database: str, tmp_path: Path) -> None:
    """`db psql` connects to the database of fairlead.toml, not to the sandbox."""
    (tmp_path / "fairlead.toml").write_text(f'[postgres]\nurl = "{database}"\n')
    environment = {name: value for name, value in os.environ.items() if name != "FAIRLEAD_CONFIG"}
    psql = (FAIRLEAD, "db", "psql", "--", "-At", "-c", "SELECT current_database()")
    output = ended(*psql, cwd=tmp_path, env=environment).stdout
    assert output == f"{urlsplit(database).path[1:]}\n"


def test_prune_lists_and_drops_old_history(database: str) -> None:
    """Days of history beyond the retention are listed and dropped; a dry run only lists them."""
    run(database, "upgrade")
    today = datetime.now(UTC).date()
    with psycopg.connect(database, autocommit=True) as connection:
        for age in (1, 40, 50):
            connection.execute("SELECT fairlead_raw.ensure_day(%s)", (today - timedelta(days=age),))
    for arguments, message, days in (
        (("--dry-run",), "would be dropped", (50, 40)),
        ((), "dropped", (50, 40)),
        ((), "dropped", ()),
    ):
        code, output = run(database, "prune", *arguments)
        *listed, summary = output.splitlines()
        assert code == 0
        assert [line.split()[0] for line in listed] == [
            f"{today - timedelta(days=age)}" for age in days
        ]
        assert f" {message}: {len(days)}, " in summary
