"""Prometheus metrics of every group."""

from datetime import UTC, datetime, timedelta
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psycopg
import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from fairlead.settings import Settings
from fairlead.store.engine import create_store_engine
from fairlead.surfaces.web import build_app
from tests.serving import serving
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.postgres


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give queries more than five seconds, which a slow machine may need."""
    monkeypatch.setattr("fairlead.store.monitoring._STATEMENT_TIMEOUT", "30min")


OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scrape(address: str, accept: str = OPENMETRICS) -> tuple[str, str]:
    """Return the content type and the text of a scrape."""
    request = Request(f"{address}/metrics", headers={"Accept": accept})  # noqa: S310 - our own
    with urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310 - the same
        return answer.headers["Content-Type"], answer.read().decode()


def families(text: str) -> list[Metric]:
    """Parse metrics in the OpenMetrics format."""
    return list(openmetrics.text_string_to_metric_families(text))  # type: ignore[no-untyped-call]


def samples(text: str) -> Samples:
    """Return the value of each metric by name and labels."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families(text)
        for sample in family.samples
    }


def of(name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return name, frozenset(labels.items())


def test_figures_are_those_of_the_history(served: str) -> None:
    """Metrics have the stored values: lag, imbalance, plans by state, adherence and times."""
    found = samples(scrape(served)[1])
    expected = {
        of("fairlead_database_up"): 1,
        of("fairlead_group_lag_records", group="orders"): 18_419,
        of("fairlead_group_forecast_lag_seconds", group="orders"): pytest.approx(387.5, abs=0.1),
        of("fairlead_group_utilisation_ratio", group="orders"): pytest.approx(1.15, abs=0.001),
        of("fairlead_group_diagnosis", group="orders", diagnosis="overloaded"): 1,
        of("fairlead_group_most_loaded_consumer_records", group="orders"): 18_251,
        of("fairlead_group_imbalance_ratio", group="orders"): 2.973,
        of("fairlead_group_topic_spread_ratio", group="orders"): 1.5,
        of("fairlead_group_adherence_ratio", group="orders"): 1,
        of("fairlead_group_plan_version", group="orders", state="published"): 2,
        of("fairlead_group_plan_version", group="billing", state="proposed"): 1,
        of("fairlead_group_partitions", group="billing", status="DATA_LOSS"): 2,
        of("fairlead_decisions_total", group="billing", outcome="failed"): 0,
    }
    assert {key: found[key] for key in expected} == expected
    oldest = found[of("fairlead_history_oldest_day_timestamp_seconds", history="decision")]
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    assert oldest < midnight.timestamp()
    assert found[of("fairlead_history_bytes", history="partition_lag")] > 0
    today = datetime.now(UTC).replace(hour=9, minute=1, second=0, microsecond=0)
    last = found[of("fairlead_group_last_decision_timestamp_seconds", group="billing")]
    assert abs(last - today.timestamp()) <= timedelta(days=1).total_seconds()
    assert last == found[of("fairlead_last_decision_timestamp_seconds")]


def test_format_is_that_of_the_request(served: str) -> None:
    """The format is OpenMetrics if the scraper accepts it, otherwise Prometheus' text format."""
    content_type, text = scrape(served)
    assert content_type.startswith("application/openmetrics-text; version=1.0.0")
    assert all(family.documentation for family in families(text))
    content_type, text = scrape(served, "*/*")
    assert content_type.startswith("text/plain; version=0.0.4")
    assert {family.name for family in text_string_to_metric_families(text)} > {
        "fairlead_group_lag_records",
        "fairlead_decisions",
    }


def test_decisions_of_this_day_are_counted(week: str, served: str) -> None:
    """The counter of decisions includes a decision of today, but not one of yesterday."""
    failed = of("fairlead_decisions_total", group="orders", outcome="failed")
    before = samples(scrape(served)[1])[failed]
    with psycopg.connect(week) as connection:
        connection.execute(
            "INSERT INTO fairlead_raw.decision"
            " (group_id, snapshot_id, snapshot_at, outcome, reason)"
            " SELECT 'orders', 'of ' || at, at, 'failed', 'no broker'"
            " FROM unnest(ARRAY[now(), now() - interval '1 day']) at"
        )
    assert samples(scrape(served)[1])[failed] == before + 1


def test_group_without_recent_samples_has_no_series(week: str, served: str) -> None:
    """A group whose last sample is nine days old has no metrics."""
    with psycopg.connect(week) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute("SELECT fairlead_raw.ensure_day(day - 9) FROM fairlead.history_days()")
        for table, column in (
            ("decision", "decided_at"),
            ("lag_snapshot", "snapshot_at"),
            ("balance", "measured_at"),
            ("group_diagnosis", "since"),
            ("group_diagnosis", "last_seen"),
        ):
            connection.execute(
                f"UPDATE fairlead_raw.{table} SET {column} = {column} - interval '9 days'"
                " WHERE group_id = 'orders'".encode()
            )
    groups = {dict(labels).get("group") for _, labels in samples(scrape(served)[1])}
    assert groups == {None, "billing"}


@pytest.mark.parametrize(("minutes", "lag"), [(10, 60), (16, 18_419)])
def test_lag_is_that_of_the_newest_sample(week: str, served: str, minutes: int, lag: int) -> None:
    """The exported lag is from the newest sample or, if this is too old, from the last run."""
    at = datetime.now(UTC) - timedelta(minutes=minutes)
    with psycopg.connect(week) as connection:
        connection.execute("DELETE FROM fairlead_raw.lag_snapshot WHERE group_id = 'billing'")
        connection.execute(
            "UPDATE fairlead_raw.group_sample_last SET sampled_at = %s, lag = '{20,40}'", [at]
        )
    found = samples(scrape(served)[1])
    assert found[of("fairlead_group_lag_records", group="orders")] == lag
    unplanned = found.get(of("fairlead_group_lag_records", group="billing"))
    assert unplanned == {10: 60, 16: None}[minutes]


@pytest.mark.parametrize(("minutes", "current"), [(5, True), (16, False)])
def test_figures_of_samples_end_with_the_samples(
    week: str, served: str, minutes: int, *, current: bool
) -> None:
    """If sampling stops, the time of the last sample is still exported, but forecasts are not."""
    at = datetime.now(UTC) - timedelta(minutes=minutes)
    with psycopg.connect(week) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(
            "UPDATE fairlead_raw.group_diagnosis SET last_seen = %s WHERE until IS NULL", (at,)
        )
    found = samples(scrape(served)[1])
    figures = {
        of("fairlead_group_forecast_lag_seconds", group=group) for group in ("orders", "billing")
    }
    assert figures.isdisjoint(found) is not current
    last = found[of("fairlead_last_sample_timestamp_seconds")]
    assert last == found[of("fairlead_group_last_sample_timestamp_seconds", group="orders")]
    assert last == pytest.approx(at.timestamp(), abs=1)


def test_missing_database_is_a_metric() -> None:
    """Without a database, only `fairlead_database_up` is exported, as 0; pages answer 503."""
    nowhere = "postgresql://nobody@127.0.0.1:1/nothing"
    # clock: there is no server to wait for
    engine = create_store_engine(nowhere, connect_timeout_s=2)
    with serving(build_app(engine, Settings())) as address:
        found = samples(scrape(address)[1])
        with pytest.raises(HTTPError, match="503") as refused:
            urlopen(address, timeout=PATIENCE_S)  # noqa: S310 - our own address
    assert found[of("fairlead_database_up")] == 0
    assert not [name for name, _ in found if name.startswith("fairlead_group")]
    with refused.value as answer:
        assert answer.read() == b"The database does not answer; `fairlead serve` logs why.\n"
