"""Asset checks: the invariants, computed again from stored rows and records.

Belongs here: checking the run's groups with the library's verifier. Does not: the invariants
(`assignors.verifier`). Publication verifies again: a failed check only stops it within its run.
"""

from typing import Final

import dagster as dg

from assets.about import written_here
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
from fairlead.workflows.reconciling import differences


@dg.asset_check(
    asset=group_offsets,
    description="Every group of the snapshot could be read. One that could not does not stop the "
    "others.",
    metadata=written_here(),
)
def every_group_was_read(
    context: dg.AssetCheckExecutionContext, spark: SparkResource
) -> dg.AssetCheckResult:
    """Warn of groups that cannot be planned."""
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
    metadata=written_here(),
)
def every_partition_has_one_owner(
    context: dg.AssetCheckExecutionContext, settings: SettingsResource, store: StoreResource
) -> dg.AssetCheckResult:
    """Verify the stored documents."""
    problems = []
    with store.open() as plans:
        groups = _groups(context, settings, plans)
        stored = plans.in_state("proposed", "approved", "published", groups=groups)
    for plan in stored:
        try:
            document = plan.verify()
        except FairleadError as error:
            found = [str(error)]
        else:
            problem = problem_of(document, {})  # the owners before do not matter
            found = violations(problem, assignment_of(problem, planned(document)))
        problems += [f"{plan.group} version {plan.version}: {what}" for what in found]
    return _result(problems)


@dg.asset_check(
    asset=published_plan,
    blocking=True,
    description="The newest record of each group in the plan topic is what the database says: the "
    "published version, with its lease, or that it is withdrawn.",
    metadata=written_here(),
)
def the_topic_agrees(
    context: dg.AssetCheckExecutionContext,
    settings: SettingsResource,
    kafka: KafkaResource,
    store: StoreResource,
) -> dg.AssetCheckResult:
    """Read the topic again, after everything was sent."""
    verifier = PublishOptions.of(settings.get().kafka).verifier()
    with store.open() as plans, kafka.plan_topic() as topic:
        groups = _groups(context, settings, plans)
        found = differences(plans, groups, topic=topic, verifier=verifier)
    return _result(
        [
            f"{difference.plan.group} version {difference.plan.version}: {difference.what}"
            for difference in found
        ]
    )


CHECKS: Final = [every_group_was_read, every_partition_has_one_owner, the_topic_agrees]


def _scope(context: dg.AssetCheckExecutionContext) -> Scope:
    """Return the scope of the run; all cohorts, if a check is run on its own, from the UI.

    A check has no partitions: without this, it would check every group in every run.
    """
    run = context.op_execution_context
    if run.has_partition_key or run.has_partition_key_range:
        return scope_of(run)
    return Scope(run.instance.get_dynamic_partitions(COHORT), {}, chosen=False)


def _groups(
    context: dg.AssetCheckExecutionContext, settings: SettingsResource, plans: PlanStore
) -> list[str]:
    """Return the run's groups: nothing is loaded of the others."""
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
