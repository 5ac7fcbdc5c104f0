"""Metrics of every group, with names for Prometheus and OpenMetrics.

Belongs here: names, units and help of the metrics. Belongs elsewhere: reading the figures
(`fairlead.store.monitoring`), and the text formats (prometheus_client).

Ten thousand groups have about 150,000 series. Most metrics have one series per group, or one per
group and status or state. Metrics of reported work have a series per consumer, and one for each of
the partitions whose records take longest.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from prometheus_client import CollectorRegistry, Metric, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.registry import Collector
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from fairlead.common.installed import installed_version
from fairlead.domain.figures import figure
from fairlead.domain.policy import Policy, policy_for
from fairlead.errors import FairleadError
from fairlead.settings import WebSettings
from fairlead.store.monitoring import CURRENT_WITHIN, Readings, read_all_groups

_log = logging.getLogger(__name__)

#: Outcomes of a decision. The counter of each outcome is exported from the beginning, with value 0.
#: Otherwise alerts would not notice the first failure, because they notice only increases.
OUTCOMES: Final = ("plan", "no change", "failed")
UNITS: Final = ("records", "ratio", "seconds", "bytes")


@dataclass(frozen=True)
class Gauge:
    """Defines a gauge. Its values are a column of rows read from the database, without nulls.

    Parameters
    ----------
    name
        The metric's name. If the metric has a unit, the name ends with the unit, as Prometheus and
        OpenMetrics require.
    rows, column
        Key of the rows in `Readings`, and name of the column with the values.
    text
        The text after `# HELP`; "": the meaning of the figure that has the column's name.
    labels
        Label names. Each label has the values of the column of the same name, except `group`, which
        has the values of `group_id`.
    """

    name: str
    rows: str
    column: str
    text: str = ""
    labels: tuple[str, ...] = ("group",)

    @property
    def documentation(self) -> str:
        """The text after `# HELP`."""
        return self.text or figure(self.column).meaning

    @property
    def unit(self) -> str:
        """The unit at the end of the name; "" for a plain number."""
        last = self.name.rpartition("_")[2]
        return last if last in UNITS else ""


GAUGES: Final = (
    Gauge(
        "fairlead_last_decision_timestamp_seconds",
        rows="last",
        column="decided_at",
        text="When the last decision on any group was made.",
        labels=(),
    ),
    Gauge(
        "fairlead_last_sample_timestamp_seconds",
        rows="last",
        column="last_seen",
        text="When any group was last diagnosed by a sample.",
        labels=(),
    ),
    Gauge("fairlead_group_forecast_lag_seconds", "diagnoses", "forecast_time_lag_s"),
    Gauge("fairlead_group_utilisation_ratio", "diagnoses", "utilisation"),
    Gauge("fairlead_group_loss_seconds", "diagnoses", "loss_s"),
    Gauge("fairlead_group_catch_up_seconds", "diagnoses", "catch_up_s"),
    Gauge("fairlead_group_consumers_wanted", "diagnoses", "consumers_wanted"),
    Gauge(
        "fairlead_group_diagnosis",
        rows="diagnoses",
        column="holds",
        text="1 for the group's present diagnosis.",
        labels=("group", "diagnosis"),
    ),
    Gauge(
        "fairlead_group_diagnosis_since_timestamp_seconds",
        rows="diagnoses",
        column="since",
        text="When the group got its present diagnosis.",
    ),
    Gauge(
        "fairlead_group_last_sample_timestamp_seconds",
        rows="samples",
        column="last_seen",
        text="When a sample last diagnosed the group.",
    ),
    Gauge(
        "fairlead_partition_seconds_per_record",
        rows="partition_work",
        column="seconds_per_record",
        text="Seconds per record, as reported by the owner; missing if unknown.",
        labels=("group", "topic", "partition"),
    ),
    Gauge(
        "fairlead_member_busy_ratio",
        rows="consumer_work",
        column="busy",
        text="Share of time in which a consumer did not wait for records, as reported.",
        labels=("group", "member"),
    ),
    Gauge("fairlead_group_lag_records", "lag", "lag"),
    Gauge(
        "fairlead_group_last_snapshot_timestamp_seconds",
        rows="snapshots",
        column="snapshot_at",
        text="When the newest snapshot of the group was taken.",
    ),
    Gauge(
        "fairlead_group_partitions",
        rows="statuses",
        column="partitions",
        text="Partitions by status in the newest snapshot; a status without partitions is missing.",
        labels=("group", "status"),
    ),
    Gauge("fairlead_group_most_loaded_consumer_records", "balance", "lag_max"),
    Gauge("fairlead_group_imbalance_ratio", "balance", "imbalance"),
    Gauge("fairlead_group_topic_spread_ratio", "balance", "topic_spread"),
    Gauge(
        "fairlead_group_rack_bytes_per_day",
        rows="balance",
        column="rack_bytes_per_day",
        text="Bytes a day that the group reads from other racks, on average; missing if unknown.",
    ),
    Gauge(
        "fairlead_group_last_decision_timestamp_seconds",
        rows="decisions",
        column="decided_at",
        text="When the last decision on the group was made, or failed.",
    ),
    Gauge(
        "fairlead_group_last_plan_timestamp_seconds",
        rows="decisions",
        column="created_at",
        text="When the newest version of the group's plan was proposed.",
    ),
    Gauge(
        "fairlead_group_plan_version",
        rows="plans",
        column="version",
        text="Version of the published plan, and of the plan that waits.",
        labels=("group", "state"),
    ),
    Gauge(
        "fairlead_group_plan_proposed_timestamp_seconds",
        rows="plans",
        column="proposed_at",
        text="When the published or waiting version was proposed.",
        labels=("group", "state"),
    ),
    Gauge(
        "fairlead_group_plan_decided_timestamp_seconds",
        rows="plans",
        column="decided_at",
        text="When the published or waiting version was approved; missing if it was not.",
        labels=("group", "state"),
    ),
    Gauge(
        "fairlead_group_plan_expiry_timestamp_seconds",
        rows="plans",
        column="expires_at",
        text="When the published or waiting version expires; missing if it never does.",
        labels=("group", "state"),
    ),
    Gauge(
        "fairlead_group_plan_most_loaded_consumer_records",
        rows="plans",
        column="lag_max_predicted",
        labels=("group", "state"),
    ),
    Gauge("fairlead_group_adherence_ratio", "plans", "adherence"),
    Gauge(
        "fairlead_freeze_timestamp_seconds",
        rows="freezes",
        column="since",
        text='When the group was frozen: no new plan is published. Group "": all groups.',
    ),
    Gauge(
        "fairlead_group_plan_regressions",
        rows="back_offs",
        column="times",
        text="Number of plans that caused a regression in the last thirty days; missing if the "
        "group is not in back-off.",
    ),
    Gauge(
        "fairlead_group_plan_regression_ended_timestamp_seconds",
        rows="ended_regressions",
        column="ended_at",
        text="When the last plan that caused a regression was replaced or withdrawn; missing after "
        "thirty days.",
    ),
    Gauge(
        "fairlead_history_bytes",
        rows="histories",
        column="bytes",
        text="Size of a history on disk, with indexes.",
        labels=("history",),
    ),
    Gauge(
        "fairlead_history_oldest_day_timestamp_seconds",
        rows="histories",
        column="oldest",
        text="When the oldest stored day (UTC) of a history began: pruning drops days.",
        labels=("history",),
    ),
)


def build_registry(
    engine: Engine,
    sample_every: timedelta = timedelta(0),
    policies: Callable[[], Sequence[Policy]] = tuple,
    web: WebSettings = WebSettings(),  # noqa: B008 - the default is immutable
) -> CollectorRegistry:
    """Return a registry that reads the database at each scrape.

    Parameters
    ----------
    engine
        Fairlead's database.
    sample_every
        The sampling interval. The metrics leave out groups that were not sampled for ten intervals
        (or for a quarter of an hour, if that is longer).
    policies
        Returns the policies, whose objectives are exported.
    web
        The addresses that alerts link to.
    """
    registry = CollectorRegistry()
    sampled_within = max(CURRENT_WITHIN, 10 * sample_every)
    registry.register(GroupCollector(engine, sampled_within, policies, web))
    ProcessCollector(registry=registry)
    return registry


class GroupCollector(Collector):
    """Every figure of every group, read at each scrape.

    If the database does not answer, `fairlead_database_up` is 0, and there are no metrics of
    groups, so that no old figures are exported. The scrape itself succeeds, so that alerts can
    distinguish a dead exporter from a dead database.
    """

    def __init__(
        self,
        engine: Engine,
        sampled_within: timedelta,
        policies: Callable[[], Sequence[Policy]],
        web: WebSettings,
    ) -> None:
        self._engine, self._sampled_within = engine, sampled_within
        self._policies, self._web = policies, web
        self._objectives: dict[str, float] = {}  # by group; computed from the policies in `_of`
        self._of: Sequence[Policy] = ()
        self._one_at_a_time = threading.Lock()

    def describe(self) -> list[Metric]:
        """Return nothing: registering must not read the database."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Read the database, and yield all metrics."""
        build = InfoMetricFamily("fairlead_build", "The version of Fairlead.")
        build.add_metric([], {"version": installed_version()})
        yield build
        links = InfoMetricFamily("fairlead_web", "Where browsers reach the pages and the docs.")
        web = self._web
        links.add_metric([], {"url": web.url or "", "docs_url": web.docs_url or ""})
        yield links
        readings = self._read()
        up = "1 if the database answered, 0 if not."
        yield GaugeMetricFamily("fairlead_database_up", up, value=float(readings is not None))
        if readings is not None:
            yield from metrics(readings)
            yield self._objective(row["group_id"] for row in readings["diagnoses"])

    def _objective(self, groups: Iterable[str]) -> Metric:
        """Return the metric with each group's objective, cached until the policies change."""
        policies = self._policies()
        if policies is not self._of:
            self._objectives, self._of = {}, policies
        family = GaugeMetricFamily(
            "fairlead_group_objective_seconds",
            "Longest acceptable time lag of the group, by its policy.",
            labels=("group",),
            unit="seconds",
        )
        for group in groups:
            if group not in self._objectives:
                objective = policy_for(group, policies).objective
                self._objectives[group] = objective.total_seconds()
            family.add_metric([group], self._objectives[group])
        return family

    def _read(self) -> Readings | None:
        with self._one_at_a_time:
            try:
                return read_all_groups(self._engine, self._sampled_within)
            except (FairleadError, SQLAlchemyError) as error:
                _log.warning("cannot read the figures of groups: %s", error)
                return None


def metrics(readings: Readings) -> Iterator[Metric]:
    """Yield the metrics of groups."""
    for gauge in GAUGES:
        yield _gauge(gauge, readings[gauge.rows])
    decisions = CounterMetricFamily(
        "fairlead_decisions",
        "Decisions on the group since midnight (UTC), by outcome.",
        labels=("group", "outcome"),
    )
    counts = {row["group_id"]: row for row in readings["counts"]}
    for group in sorted({row["group_id"] for row in readings["decisions"]}):
        for outcome in OUTCOMES:
            count = counts[group][outcome] if group in counts else 0
            decisions.add_metric((group, outcome), count)
    yield decisions


def _gauge(gauge: Gauge, rows: Iterable[Any]) -> Metric:
    family = GaugeMetricFamily(
        gauge.name, gauge.documentation, labels=gauge.labels, unit=gauge.unit
    )
    columns = ["group_id" if label == "group" else label for label in gauge.labels]
    for row in rows:
        value = row[gauge.column]
        if value is not None:
            family.add_metric([row[name] or "" for name in columns], _number(value))
    return family


def _number(value: Any) -> float:
    return value.timestamp() if isinstance(value, datetime) else float(value)
