"""`fairlead doctor`: checks of services, the archive, the host and Dagster's sensors."""

import json
import os
import re
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from pydantic import SecretStr
from typer.testing import CliRunner

from fairlead.archive import SampleArchive
from fairlead.settings import PostgresSettings, Settings
from fairlead.surfaces.cli import app
from fairlead.surfaces.doctor import Finding, examine
from fairlead.surfaces.doctor.archive import examine_archive
from fairlead.surfaces.doctor.switches import findings
from tests.programs import FAIRLEAD, ended
from tests.waiting import PATIENCE_S, eventually


def by_name(settings: Settings) -> dict[str, Finding]:
    """Return the findings by name."""
    return {finding.name: finding for finding in examine(settings)}


def at(settings: Settings, url: str) -> Settings:
    """Return the settings with this database URL."""
    return settings.model_copy(update={"postgres": PostgresSettings(url=SecretStr(url))})


@pytest.mark.kafka
@pytest.mark.postgres
def test_new_installation_is_ok(
    settings: Settings, migrated: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing fails; warnings report the missing sample, signing key and Dagster home."""
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    found = by_name(at(settings, migrated))
    assert {name for name, finding in found.items() if finding.state == "failed"} == set()
    for name in ("java", "disk", "archive", "database", "clocks", "schema", "role", "kafka"):
        assert found[name].state == "ok"
    for name in ("samples", "keys", "dagster"):
        assert found[name].state == "warning"
        assert found[name].remedy


@pytest.mark.kafka
@pytest.mark.postgres
def test_topic_with_any_codec_is_reported(
    settings: Settings, migrated: str, kafka_topic: Callable[..., str]
) -> None:
    """A plan topic that accepts all compression codecs gets a warning, whose remedy works.

    Both `doctor` and `plans reconcile` report it.
    """
    kafka = settings.kafka.model_copy(
        update={"plan_topic": kafka_topic(config={"cleanup.policy": "compact"})}
    )
    wanted = at(settings, migrated).model_copy(update={"kafka": kafka})
    found = by_name(wanted)[kafka.plan_topic]
    assert (found.state, found.detail.split(":")[0]) == ("warning", "has compression.type=producer")
    surroundings = {
        "FAIRLEAD_POSTGRES__URL": migrated,
        "FAIRLEAD_KAFKA__BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
        "FAIRLEAD_KAFKA__PLAN_TOPIC": kafka.plan_topic,
    }
    done = CliRunner().invoke(app, ["plans", "reconcile", "--dry-run"], env=surroundings)
    assert (done.exit_code, found.remedy in done.stderr) == (0, True)

    name, _, value = found.remedy.split(" --add-config ")[1].partition("=")
    change = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    topic = ConfigResource(ResourceType.TOPIC, kafka.plan_topic, incremental_configs=[change])
    admin = AdminClient(kafka.librdkafka())
    admin.incremental_alter_configs([topic])[topic].result(PATIENCE_S)
    eventually(
        lambda: by_name(wanted)[kafka.plan_topic].state == "ok", "the broker has the new setting"
    )


@pytest.mark.kafka
@pytest.mark.postgres
def test_missing_schema_has_a_remedy(settings: Settings, database: str) -> None:
    """If the schema is missing, the remedy is `fairlead db upgrade`; other checks are skipped."""
    found = by_name(at(settings, database))
    assert (found["schema"].state, found["schema"].remedy) == ("failed", "fairlead db upgrade")
    assert "role" not in found


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("limit", "what"),
    [
        ("default_transaction_read_only%3Don", "default_transaction_read_only is on"),
        ("temp_file_limit%3D64", "temporary file size exceeds"),
    ],
    ids=["read-only", "full"],
)
def test_read_only_database_is_a_failure(
    settings: Settings, migrated: str, limit: str, what: str
) -> None:
    """The database's check fails on a standby, and on a full disk (simulated by a limit)."""
    wanted = at(settings, f"{migrated}&options=-c%20{limit}")
    found = [
        finding
        for finding in examine(wanted, skip=("kafka", "dagster"))
        if finding.name == "database"
    ]
    assert [finding.state for finding in found] == ["failed"]
    assert what in found[0].detail


def test_read_only_archive_is_a_warning(tmp_path: Path) -> None:
    """Read-only or damaged archives are only warnings, because analyses continue without them."""
    settings = Settings(state_dir=tmp_path)
    (found,) = examine_archive(settings)
    assert (found.state, found.detail) == (
        "ok",
        f"samples are stored in {tmp_path}/warehouse/samples",
    )
    series = tmp_path / "warehouse" / "samples"
    (series / "2026-01-31").mkdir(parents=True)
    (series / "2026-01-31" / "foreign.parquet").write_text("?")
    SampleArchive(settings.warehouse_path).tidy(datetime.now(UTC), settings.sampling.retention)
    (found,) = examine_archive(settings)
    assert (found.state, "has 1 damaged file, the newest" in found.detail) == ("warning", True)
    assert "2026-01-31-foreign.parquet" in found.detail
    series.rename(tmp_path / "moved")
    series.write_text("a file")
    (found,) = examine_archive(settings)
    assert (found.state, found.detail) == (
        "warning",
        f"samples cannot be written to {tmp_path}/warehouse/samples",
    )


def test_each_line_is_printed_at_once() -> None:
    """The host's findings are printed before the database answers, each with its remedy."""
    skipped = ("--skip", "archive", "--skip", "kafka", "--skip", "dagster")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://nobody@127.0.0.1:{silent.getsockname()[1]}/nothing"
        with subprocess.Popen(
            [FAIRLEAD, "doctor", *skipped],
            env={**os.environ, "FAIRLEAD_POSTGRES__URL": url},
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            assert any(re.match(r"(ok|warning) +disk: ", line) for line in process.stdout)
            silent.close()  # now the database's check fails
            failed, remedy = process.stdout.read().splitlines()
    assert failed.startswith("failed   database: ")
    assert remedy.strip().startswith("start Postgres")


@pytest.mark.long
def test_missing_services_are_failures_and_others_are_checked() -> None:
    """Missing services are failures without a traceback, and the exit code is 1."""
    away = {
        "FAIRLEAD_POSTGRES__URL": "postgresql://nobody@127.0.0.1:1/nothing",
        "FAIRLEAD_KAFKA__BOOTSTRAP_SERVERS": "127.0.0.1:1",
        "FAIRLEAD_KAFKA__REQUEST_TIMEOUT_S": "1",
    }
    done = ended(FAIRLEAD, "doctor", "--json", status=1, env=away)
    found = {load["name"]: load for load in json.loads(done.stdout)}
    states = {name: load["state"] for name, load in found.items()}
    assert found["database"]["remedy"].startswith("start Postgres, or set postgres.url")
    assert (states["database"], states["kafka"], states["disk"]) == ("failed", "failed", "ok")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("found", "states"),
    [
        (
            {"on": ["planning_sensor"], "off": [], "dead": [], "ticked": ["group_samples"]},
            {
                "dagster": "ok",
                "group_samples": "ok",
                "planning": "ok",
                "planning_sensor": "warning",
            },
        ),
        (
            {"on": [], "off": ["group_samples"], "dead": ["SENSOR"], "ticked": []},
            {"dagster": "failed", "group_samples": "warning", "planning": "warning"},
        ),
    ],
)
def test_states_of_sensors_and_daemons(found: Mapping[str, Any], states: Mapping[str, str]) -> None:
    """A Dagster daemon that has ended is a failure; a sensor that is off is a warning."""
    results = list(findings({**found, "ticked": dict.fromkeys(found["ticked"], time.time())}))
    assert {finding.name: finding.state for finding in results} == states
    assert all(finding.remedy for finding in results if finding.state != "ok")
