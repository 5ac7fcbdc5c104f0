"""The sensors: discovery of groups, approved plans, samples, and states of plans."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest

from fairlead.archive import SampleArchive, Taken
from fairlead.store.acts import act
from fairlead.store.attempts import Attempt, record_attempts
from fairlead.store.engine import create_store_engine
from orchestration.samples import IN_A_TICK_S
from tests.conftest import KafkaTopic
from tests.docs.scenario import store_week
from tests.fixtures.consumer_groups import Join
from tests.logins import logins
from tests.pipeline import Pipeline
from tests.stored import wanted

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

MakeGroups = Callable[..., list[str]]


@pytest.fixture
def make_groups(
    pipeline: Pipeline, kafka_topic: KafkaTopic, join: Join, unique_name: str
) -> MakeGroups:
    """Return a function that creates groups, and settings with which discovery finds only these.

    `make_groups("a", "b", exclude=(), policies="") -> full names`
    """
    topic = kafka_topic()

    def make(*names: str, exclude: Sequence[str] = (), policies: str = "") -> list[str]:
        groups = [f"{unique_name}-{name}" for name in names]
        for group in groups:
            join(group, [topic], 1, [{"client.id": "only"}])
        pipeline.configure(
            f'[discovery]\ninclude = ["{unique_name}-*"]\nexclude = {list(exclude)}\n{policies}'
        )
        return groups

    return make


def requested(pipeline: Pipeline) -> dict[str, list[str]]:
    """Return the Dagster partitions that discovery requests to add, and those to remove."""
    kinds = {dg.AddDynamicPartitionsRequest: "add", dg.DeleteDynamicPartitionsRequest: "remove"}
    return {
        kinds[type(request)]: list(request.partition_keys)
        for request in pipeline.sensor("group_discovery").dynamic_partitions_requests or ()
    }


def leave_run(pipeline: Pipeline, job: str, *, age: timedelta = timedelta(0)) -> None:
    """Store in Dagster a run that started `age` ago and has not ended."""
    run = dg.DagsterRun(job_name=job, status=dg.DagsterRunStatus.STARTED)
    pipeline.instance.run_storage.add_historical_run(run, datetime.now(UTC) - age)


def test_discovery_adds_one_partition_for_a_named_cohort(
    pipeline: Pipeline, make_groups: MakeGroups, unique_name: str
) -> None:
    """Two groups whose policy names a cohort get one Dagster partition, named like the cohort."""
    _, _, other = make_groups(
        "eu-1", "eu-2", "us", policies=f'[[policies]]\ngroups = "{unique_name}-eu-*"\ncohort = "eu"'
    )
    assert requested(pipeline) == {"add": ["eu", other]}


@pytest.mark.parametrize("job", ["planning", "adoption"])
def test_discovery_removes_nothing_during_a_run(
    pipeline: Pipeline, make_groups: MakeGroups, job: str
) -> None:
    """During a run, discovery removes no Dagster partition: the run may cover a range of them."""
    (a,) = make_groups("a")
    pipeline.know("vanished")
    leave_run(pipeline, job)
    assert requested(pipeline) == {"add": [a]}


def approve_billing(pipeline: Pipeline, database: str) -> None:
    """Approve a plan of the group `billing`, which does not exist in Kafka."""
    store_week(database)
    plan = pipeline.store.get("billing", 1)
    pipeline.store.approve("billing", 1, sha256=plan.sha256, reason="fine", actor="kim")


def test_approved_plan_of_an_excluded_group_is_named(pipeline: Pipeline, migrated: str) -> None:
    """If discovery excludes a group, its plan is not sent, and the skip message names the group."""
    approve_billing(pipeline, migrated)
    pipeline.configure('[discovery]\ninclude = ["shop-*"]')
    tick = pipeline.sensor("approved_plans")
    assert "Discovery excludes billing" in str(tick.skip_message)
    assert pipeline.store.get("billing", 1).state == "approved"


def test_unsent_plan_is_sent_at_its_next_attempt(pipeline: Pipeline, migrated: str) -> None:
    """If a plan could not be sent, the next attempt is at the stored time, not earlier.

    Until then, the skip message has that time and the last error.
    """
    approve_billing(pipeline, migrated)
    pipeline.configure('[discovery]\ninclude = ["billing"]')
    now = datetime.now(UTC)
    why, later = "Group billing: The group is rebalancing", now + timedelta(minutes=5)
    record_attempts(pipeline.store.engine, [Attempt("billing", 1, now, why, later)])
    tick = pipeline.sensor("approved_plans")
    assert f"billing: {why}, tried again at {later:%H:%M:%S} UTC" in str(tick.skip_message)
    record_attempts(pipeline.store.engine, [Attempt("billing", 1, now, why, now)])
    pipeline.sensor("approved_plans")
    assert pipeline.store.get("billing", 1).state == "stale"


def test_request_of_a_page_is_carried_out_at_once(pipeline: Pipeline, migrated: str) -> None:
    """A withdrawal requested on a web page is sent at once, even if the next attempt is later."""
    store_week(migrated)
    pipeline.configure('[discovery]\ninclude = ["orders"]')
    plan = pipeline.store.published("orders")
    assert plan is not None
    now = datetime.now(UTC)
    later = now + timedelta(minutes=5)
    record_attempts(pipeline.store.engine, [Attempt("orders", plan.version, now, "frozen", later)])
    with logins(migrated) as make:
        engine = create_store_engine(make("fairlead_web"))
        act(engine, wanted("withdraw", plan))
        engine.dispose()
    pipeline.sensor("approved_plans")
    assert pipeline.store.get("orders", plan.version).state == "withdrawn"


def test_long_sample_is_a_run(pipeline: Pipeline, make_groups: MakeGroups) -> None:
    """If the last sample took long, a run of the job `sample` takes the next sample.

    Sensors run one after the other, so a long sample would delay the others.
    """
    make_groups("a", "b")
    archive = SampleArchive(pipeline.settings.warehouse_path)
    archive.note(Taken(datetime.now(UTC) - timedelta(hours=1), IN_A_TICK_S + 1, 5_000, 500_000))
    (request,) = pipeline.sensor("group_samples").run_requests or ()
    result = pipeline.operate("sample")
    assert result.success, request
    taken = archive.taken()
    assert taken is not None
    assert taken.groups == 2


def test_samples_do_not_wait_for_a_killed_sample(pipeline: Pipeline) -> None:
    """A run of the job `sample` that has not ended after four intervals does not stop sampling."""
    SampleArchive(pipeline.settings.warehouse_path).note(
        Taken(datetime.now(UTC) - timedelta(hours=1), 0.5, 1, 1)
    )
    leave_run(pipeline, "sample", age=4 * pipeline.settings.sampling.every)
    assert "Sampled" in str(pipeline.sensor("group_samples").skip_message)


def test_asset_shows_a_plans_later_state(pipeline: Pipeline, migrated: str) -> None:
    """If a plan is rejected, the sensor `plan_life` adds one observation to the asset."""
    store_week(migrated)
    pipeline.know("billing")
    pipeline.store.reject("billing", 1, reason="not today", actor="kim")

    def observations() -> list[dg.AssetObservation]:
        events = pipeline.sensor("plan_life").asset_events
        return [event for event in events if isinstance(event, dg.AssetObservation)]

    (observation,) = observations()
    facts = {name: str(value.value) for name, value in observation.metadata.items()}
    assert (observation.asset_key.to_user_string(), observation.partition) == (
        "assignment_plan",
        "billing",
    )
    assert facts["state"] == "rejected"
    assert "by kim: not today" in facts["since then"]
    assert facts["to approve it"] == "version 1 is rejected already"
    cursor = pipeline.sensor("plan_life").cursor
    assert pipeline.sensor("plan_life", cursor=cursor).asset_events == []
