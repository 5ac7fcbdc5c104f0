"""The whole pipeline on real services, for the tests of assets and of orchestration.

Belongs here: a pipeline with a separate database, warehouse, plan topic and policies, and methods
that run jobs and read results. Belongs elsewhere: the services themselves (`conftest`).
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final

import dagster as dg
import psycopg
import pytest
from confluent_kafka import Producer
from dagster._core.definitions.partitions.context import partition_loading_context
from dagster._core.definitions.sensor_definition import SensorExecutionData
from psycopg.rows import dict_row

from assets.checks import CHECKS
from assets.partitions import COHORT
from fairlead.domain.records import StoredPlan
from fairlead.kafka.compacted_topic import Record
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.settings import Settings, load_settings
from fairlead.spark.warehouse import Warehouse
from fairlead.store.engine import create_store_engine
from fairlead.store.migrate import upgrade
from fairlead.store.plans import PlanStore
from orchestration.definitions import build_defs
from orchestration.proxy import ACTOR_TAG
from orchestration.runs import range_tags
from tests.fairlead.followers.helpers import Member
from tests.recalled import recall
from tests.stored import plan_history
from tests.waiting import PATIENCE_S, eventually

#: Records in each partition of a topic. With `range`, the first of two consumers has most of them.
SKEWED: Final = (100, 80, 5, 5)

#: Settings with a policy that approves every plan automatically.
APPROVED_BY_POLICY: Final = """
[[policies]]
approval = {automatic = true, forbidden_statuses = []}
"""
#: Settings with the default policy: a person must approve each plan.
APPROVED_BY_A_PERSON: Final = ""


class Pipeline:
    """The pipeline, run in this process with separate state.

    Parameters
    ----------
    instance
        Dagster instance.
    config
        The settings file that every resource reads.
    """

    def __init__(self, instance: dg.DagsterInstance, config: Path) -> None:
        self.instance = instance
        self._config = config
        self._connection = config.read_text()
        self._engine = create_store_engine(self.settings.postgres)
        self.store = PlanStore(self._engine)

    @property
    def settings(self) -> Settings:
        """Return the settings that Dagster's resources read."""
        return load_settings()

    @property
    def warehouse(self) -> Warehouse:
        """Return the warehouse that holds the snapshots."""
        return Warehouse(self.settings.warehouse_path)

    def configure(self, policies: str) -> None:
        """Replace the settings of policies and discovery, given as TOML, in the settings file."""
        self._config.write_text(f"{self._connection}\n{policies}")

    def know(self, *cohorts: str) -> None:
        """Add cohorts as partitions to Dagster, as the discovery sensor does."""
        self.instance.add_dynamic_partitions(COHORT, list(cohorts))

    def run(self, job: str, *cohorts: str, **arguments: Any) -> dg.ExecuteInProcessResult:
        """Run a job once: for one cohort, or for the range from the first to the last cohort."""
        self.know(*cohorts)
        first, *others = cohorts
        definition = build_defs().resolve_job_def(job)
        if not others:
            return definition.execute_in_process(
                instance=self.instance, partition_key=first, **arguments
            )
        return definition.execute_in_process(
            instance=self.instance, tags=range_tags(first, others[-1]), **arguments
        )

    def operate(
        self, job: str, *, actor: str | None = None, **config: Any
    ) -> dg.ExecuteInProcessResult:
        """Run a job for people, such as `approve`, as from Dagster's launchpad."""
        definition = build_defs().resolve_job_def(job)
        (node,) = definition.nodes
        return definition.execute_in_process(
            instance=self.instance,
            run_config={"ops": {node.name: {"config": config}}} if config else None,
            tags={ACTOR_TAG: actor} if actor else None,
            raise_on_error=False,
        )

    def check(self, name: str, *, raise_on_error: bool = False) -> dg.ExecuteInProcessResult:
        """Run one asset check on all known cohorts, as from Dagster's UI."""
        (key,) = (key for checks in CHECKS for key in checks.check_keys if key.name == name)
        job = dg.define_asset_job("one_check", selection=dg.AssetSelection.checks(key))
        definition = build_defs(jobs=[job]).resolve_job_def("one_check")
        return definition.execute_in_process(instance=self.instance, raise_on_error=raise_on_error)

    def sensor(self, name: str, *, cursor: str | None = None) -> SensorExecutionData:
        """Evaluate a sensor as Dagster's daemon does."""
        definitions = build_defs()
        context = dg.build_sensor_context(
            instance=self.instance,
            definitions=definitions,
            resources=definitions.resources,
            cursor=cursor,
        )
        with context, partition_loading_context(dynamic_partitions_store=self.instance):
            return definitions.resolve_sensor_def(name).evaluate_tick(context)

    def history(self, group: str) -> list[dict[str, Any]]:
        """Return a group's rows of the view plan_history."""
        return plan_history(self.store, group)

    def only_version(self, group: str) -> StoredPlan:
        """Return a group's plan, after checking that it has only version 1."""
        assert [row["version"] for row in self.history(group)] == [1]
        return self.store.get(group, 1)

    def sql(self, query: str, *values: Any) -> list[dict[str, Any]]:
        """Run SQL as the database's superuser; return the rows if it is a query."""
        url = self.settings.postgres.url.get_secret_value()
        with psycopg.connect(url, row_factory=dict_row) as connection:
            cursor = connection.execute(query.encode(), values)
            return cursor.fetchall() if cursor.description else []

    def tamper(self, *statements: str) -> None:
        """Run SQL that changes protected data: as superuser, with triggers disabled."""
        url = self.settings.postgres.url.get_secret_value()
        with psycopg.connect(url) as connection:
            connection.execute("SET session_replication_role = replica")
            for statement in statements:
                connection.execute(statement.encode())

    def decisions(self, group: str) -> list[tuple[str, str, int | None]]:
        """Return outcome, reason and version of all decisions on a group, oldest first."""
        rows = self.sql(
            "SELECT outcome, reason, version FROM fairlead.decision WHERE group_id = %s"
            " ORDER BY decided_at",
            group,
        )
        return [(row["outcome"], row["reason"], row["version"]) for row in rows]

    def record(self, group: str) -> Record | None:
        """Return the group's newest record in the plan topic."""
        with PlanTopic(self.settings.kafka) as topic:
            return topic.read(group)

    def produce(self, topic: str, counts: Sequence[int]) -> None:
        """Append `counts[p]` records to each partition p of a topic."""
        producer = Producer(self.settings.kafka.librdkafka())
        for partition, count in enumerate(counts):
            for _ in range(count):
                producer.produce(topic, b"record", partition=partition)
        assert producer.flush(PATIENCE_S) == 0

    def recall(self, group: str) -> None:
        """Store invented samples of a group for the time before now; see `tests.recalled`."""
        recall(self.settings.kafka, self.settings.warehouse_path, group)

    def close(self) -> None:
        """Close the database connections."""
        self._engine.dispose()


@dataclass(frozen=True)
class Consumers:
    """A group of real consumers, each on a thread, which follow plans and never commit.

    Parameters
    ----------
    group, topic
        The group's id, and the only topic that it reads.
    members
        The consumers by client id.
    """

    group: str
    topic: str
    members: dict[str, Member]

    @property
    def owned(self) -> dict[str, list[int]]:
        """Return the partitions that each consumer owns now, by client id."""
        return {name: member.owned.get(self.topic, []) for name, member in self.members.items()}

    def settled(self, partitions: int) -> bool:
        """Return whether every partition has one owner, and every consumer owns a partition."""
        shares = self.owned.values()
        return all(shares) and sorted(chain(*shares)) == list(range(partitions))

    def settle(self, partitions: int) -> None:
        """Wait until `settled`."""
        eventually(lambda: self.settled(partitions), f"group {self.group} settles")


@contextmanager
def running_pipeline(
    settings: Settings,
    database: str,
    plan_topic: str,
    directory: Path,
    instance: dg.DagsterInstance | None = None,
) -> Iterator[Pipeline]:
    """Yield a pipeline; Dagster's resources in this process use its settings until the end.

    Parameters
    ----------
    settings
        Settings with Kafka's address.
    database
        URL of a database; the schema is created or migrated.
    plan_topic
        Name of the plan topic.
    directory
        Folder for the settings file and snapshots.
    instance
        Dagster instance; None: a new one that is discarded at the end.
    """
    upgrade(database)
    config = directory / "fairlead.toml"
    config.write_text(
        f'state_dir = "{directory}"\n'
        f'kafka.bootstrap_servers = "{settings.kafka.bootstrap_servers}"\n'
        f"kafka.request_timeout_s = {PATIENCE_S}\n"
        f'kafka.plan_topic = "{plan_topic}"\n'
        f'postgres.url = "{database}"\n'
        'spark.master = "local[2]"\n'
        'spark.properties = {"spark.sql.shuffle.partitions" = "2"}\n'
    )
    with pytest.MonkeyPatch.context() as patch, instance or dg.DagsterInstance.ephemeral() as own:
        for name in [name for name in os.environ if name.startswith("FAIRLEAD_")]:
            if name != "FAIRLEAD_CACHE_DIR":
                patch.delenv(name)
        patch.setenv("FAIRLEAD_CONFIG", str(config))
        for sensors in ("samples", "sensors"):
            patch.setattr(f"orchestration.{sensors}.PATIENCE_S", PATIENCE_S)
        pipeline = Pipeline(own, config)
        try:
            yield pipeline
        finally:
            pipeline.close()


def metadata(result: dg.ExecuteInProcessResult, asset: str) -> dict[str, Any]:
    """Return the metadata of an asset from a run, by name."""
    facts = result.asset_materializations_for_node(asset)[0].metadata
    return {name: value.value for name, value in facts.items()}


def rows(result: dg.ExecuteInProcessResult, asset: str, name: str) -> list[dict[str, Any]]:
    """Return the rows of the table `name` in the metadata of an asset from a run."""
    return [dict(record.data) for record in metadata(result, asset)[name].records]


def failed_checks(result: dg.ExecuteInProcessResult) -> dict[str, list[str]]:
    """Return the problems of a run's failed checks: name of the check -> problems."""
    return {
        evaluation.check_name: problems(evaluation)
        for evaluation in result.get_asset_check_evaluations()
        if not evaluation.passed
    }


def problems(evaluation: dg.AssetCheckEvaluation) -> list[str]:
    """Return the problems that a failed check lists in its metadata."""
    facts = evaluation.metadata["what"]
    assert isinstance(facts, dg.TableMetadataValue)
    return [str(record.data["problem"]) for record in facts.records]
