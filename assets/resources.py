"""Dagster resources: Kafka, Postgres, Spark and snapshots for assets, sensors and checks.

Belongs here: opening and closing the library's clients. Belongs elsewhere: the values of settings
(`fairlead.settings`), because some are secrets, and the UI would show them.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import dagster as dg
from sqlalchemy import Engine

from fairlead.archive import SampleArchive
from fairlead.common.progress import ReportProgress
from fairlead.kafka.gateway import KafkaGateway
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.settings import Settings, load_settings
from fairlead.spark.warehouse import Warehouse
from fairlead.store.engine import create_store_engine
from fairlead.store.plans import PlanStore

if TYPE_CHECKING:  # runs that need no Spark do not import it
    from pyspark.sql import SparkSession


class SettingsResource(dg.ConfigurableResource[Settings]):
    """Fairlead's settings: `fairlead.toml` and `FAIRLEAD_*`, read again at each call."""

    def get(self) -> Settings:
        """Read the settings; raises ConfigurationError."""
        return load_settings()


class KafkaResource(dg.ConfigurableResource[KafkaGateway]):
    """The Kafka cluster."""

    def gateway(self, *, at_most_s: float | None = None) -> KafkaGateway:
        """Return a gateway to groups and offsets. Use the gateway as a context manager.

        Parameters
        ----------
        at_most_s
            Seconds. Time-out for requests to brokers, unless the settings have a shorter one.
        """
        settings = load_settings().kafka
        if at_most_s is not None and at_most_s < settings.request_timeout_s:
            settings = settings.model_copy(update={"request_timeout_s": at_most_s})
        return KafkaGateway(settings)

    def plan_topic(self) -> PlanTopic:
        """Return the plan topic. Use it as a context manager."""
        return PlanTopic(load_settings().kafka)


class StoreResource(dg.ConfigurableResource[PlanStore]):
    """The plan store in Postgres."""

    @contextmanager
    def open(self) -> Iterator[PlanStore]:
        """Connect to the store, and close its connections at the end of the block."""
        with self.connect() as engine:
            yield PlanStore(engine, load_settings().source)

    @contextmanager
    def connect(self) -> Iterator[Engine]:
        """Connect to the database, and close connections at the end of the block."""
        engine = create_store_engine(load_settings().postgres)
        try:
            yield engine
        finally:
            engine.dispose()


class SparkResource(dg.ConfigurableResource["SparkSession"]):
    """The Spark session of the process, and the Parquet snapshots."""

    def session(self, report: ReportProgress) -> "SparkSession":
        """Return this process's session.

        The first call connects to the Spark that `fairlead spark up` keeps running on this machine.
        If there is none, the call starts Spark, which takes seconds. `report` is called with
        messages for the log.
        """
        from fairlead.sandbox.spark import SparkServer  # noqa: PLC0415 - see above
        from fairlead.spark.session import build_session, running_session  # noqa: PLC0415 - the same

        running = running_session()
        if running is not None:
            return running
        settings, began = load_settings(), time.monotonic()
        warm = SparkServer(settings.state_dir, settings.spark).for_run(report)
        if warm is None:
            report(f"Starting Spark, {settings.spark.master}")
        session = build_session(settings.spark, warm=warm)
        how = "Started Spark" if warm is None else "Found the warm Spark"
        report(f"{how} in {time.monotonic() - began:.1f} s")
        return session

    def warehouse(self) -> Warehouse:
        """Return the warehouse of snapshots."""
        return Warehouse(load_settings().warehouse_path)

    def archive(self) -> SampleArchive:
        """Return the archive of samples, which is in the warehouse."""
        return SampleArchive(load_settings().warehouse_path)
