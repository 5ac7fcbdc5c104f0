"""Asset checks: verify what a run has read, stored in Postgres, and sent to Kafka.

Belongs here: checking the run's groups with the library's verifier. Belongs elsewhere: the
invariants of every plan (`assignors.verifier`). A failed check stops publication in its own run.
Other runs can still publish, but they verify every plan again.
"""

from typing import Final

import dagster as dg

from assets.assignment_plan import assignment_plan
from assets.group_offsets import group_offsets
from assets.partitions import COHORT
from assets.presentation import table
from assets.published_plan import published_plan
from assets.resources import KafkaResource, SettingsResource, SparkResource, StoreResource
from assets.scope import Scope, scope_of
from assets.steps import snapshots_of
from assignors.verifier import violations
from fairlead.domain.as_problem import assignment_of, planned, problem_of
from fairlead.errors import FairleadError
from fairlead.store.plans import PlanStore
from fairlead.workflows.delivery import PublishOptions
from fairlead.workflows.differences import differences


@dg.asset_check(
    asset=group_offsets,
    description="Passes if every group of the snapshot could be read. If a group could not be "
    "read, the run continues with the others.",
)
def every_group_was_read(
    context: dg.AssetCheckExecutionContext, spark: SparkResource
) -> dg.AssetCheckResult:
    """Warn of groups that could not be read. Such groups cannot be planned."""
    warehouse = spark.warehouse()
    errors = [
        f"{row['group']}: {row['error']}"
        for recent in snapshots_of(context, _scope(context), warehouse, "groups")
        for row in warehouse.samples(recent).select(["group", "error"]).to_pylist()
        if row["error"]
    ]
    return _result(errors, severity=dg.AssetCheckSeverity.WARN)


@dg.asset_check(
    asset=assignment_plan,
    blocking=True,
    description="In every plan that is open or published, each partition of a subscribed topic has "
    "exactly one subscribed owner, and the stored bytes agree with their hash.",
)
def every_partition_has_one_owner(
    context: dg.AssetCheckExecutionContext, settings: SettingsResource, store: StoreResource
) -> dg.AssetCheckResult:
    """Verify that plans give each partition one owner, and that their bytes are unchanged."""
    with store.open() as plans:
        groups = _groups(context, settings, plans)
        stored = plans.in_state("proposed", "approved", "published", groups=groups)
    problems = []
    for plan in stored:
        name = f"{plan.group} version {plan.version}"
        try:
            document = plan.verify()
        except FairleadError as error:
            problems.append(f"{name}: {error}")
            continue
        problem = problem_of(document, {})  # the check needs no previous owners
        assignment = assignment_of(problem, planned(document))
        problems += [f"{name}: {what}" for what in violations(problem, assignment)]
    return _result(problems)


@dg.asset_check(
    asset=published_plan,
    blocking=True,
    description="The newest record of each group in the plan topic is the one that the database "
    "expects: the published version with its lease, or its withdrawal.",
)
def the_topic_agrees(
    context: dg.AssetCheckExecutionContext,
    settings: SettingsResource,
    kafka: KafkaResource,
    store: StoreResource,
) -> dg.AssetCheckResult:
    """Read the plan topic after the run has sent records, and compare it with the database."""
    verifier = PublishOptions.of(settings.get().kafka).verifier()
    with store.open() as plans, kafka.plan_topic() as topic:
        groups = _groups(context, settings, plans)
        disagreements = differences(plans, groups, topic=topic, verifier=verifier)
    return _result(
        [
            f"{difference.plan.group} version {difference.plan.version}: {difference.what}"
            for difference in disagreements
        ]
    )


CHECKS: Final = [
    every_group_was_read,
    every_partition_has_one_owner,
    the_topic_agrees,
]


def _scope(context: dg.AssetCheckExecutionContext) -> Scope:
    """Return the scope of the run, which defines the groups to check.

    If the run also materializes assets, the assets' partitions in Dagster define the scope. If the
    run has only checks, it has no partitions, and the scope is all cohorts.
    """
    run = context.op_execution_context
    if run.has_partition_key or run.has_partition_key_range:
        return scope_of(run)
    return Scope(run.instance.get_dynamic_partitions(COHORT), {}, chosen=False)


def _groups(
    context: dg.AssetCheckExecutionContext, settings: SettingsResource, plans: PlanStore
) -> list[str]:
    """Return the groups of the run that the database knows."""
    return _scope(context).of(plans.known_groups(), settings)


def _result(
    problems: list[str], severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR
) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        passed=not problems,
        severity=severity,
        metadata={
            "problems": len(problems),
            "what": table([{"problem": problem} for problem in sorted(problems)]),
        },
    )
