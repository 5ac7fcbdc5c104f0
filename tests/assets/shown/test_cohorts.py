"""Metadata that a step adds to each cohort of its run.

A cohort is a set of groups that are planned together. In Dagster, it is a partition.
"""

from collections.abc import Sequence
from typing import Any

import dagster as dg

from assets.shown import cohorts
from fairlead.settings import Settings, WebSettings
from orchestration.runs import range_tags

SINGLE_RUN = dg.BackfillPolicy.single_run()


def test_cohorts_that_need_attention_get_metadata_first() -> None:
    """Only the first `DETAILED` cohorts get metadata, because each costs a database query."""
    keys = [f"cohort-{n}" for n in range(120)]
    described: list[str] = []

    def describe(groups: Sequence[str]) -> dict[str, Any]:
        described.extend(groups)
        return {"groups": len(groups)}

    @dg.asset(partitions_def=dg.StaticPartitionsDefinition(keys), backfill_policy=SINGLE_RUN)
    def step(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
        return cohorts.materialized(context, reversed(keys), Settings(), describe)

    with dg.DagsterInstance.ephemeral() as instance:
        result = dg.materialize([step], instance=instance, tags=range_tags(keys[0], keys[-1]))
    events = {
        materialization.partition: dict(materialization.metadata)
        for materialization in result.asset_materializations_for_node("step")
    }
    assert described == keys[: -cohorts.DETAILED - 1 : -1]
    assert [key for key in keys if "groups" in events[key]] == keys[-cohorts.DETAILED :]
    assert all("one of 120 cohorts" in str(event["planned together"]) for event in events.values())


def test_metadata_of_a_partition_has_only_its_own_groups() -> None:
    """Metadata of the Dagster partition `orders` do not include groups of other cohorts."""

    @dg.asset(partitions_def=dg.StaticPartitionsDefinition(["orders", "billing"]))
    def step(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
        found = ["billing", "orders"]
        settings = Settings(web=WebSettings(url="https://plans.example"))
        return cohorts.materialized(context, found, settings, lambda names: {"groups": str(names)})

    with dg.DagsterInstance.ephemeral() as instance:
        result = dg.materialize([step], instance=instance, partition_key="orders")
    (event,) = result.asset_materializations_for_node("step")
    page = "[Open the group's page](https://plans.example/group?group=orders)"
    assert event.metadata == {
        "groups": dg.MetadataValue.text("['orders']"),
        "details": dg.MetadataValue.md(page),
    }


def test_step_succeeds_although_its_metadata_fails() -> None:
    """If computing metadata raises KeyError, the error is shown as metadata; the step succeeds."""

    def describe(groups: Sequence[str]) -> dict[str, Any]:  # noqa: ARG001 - `Describe`
        raise KeyError("orders", 7)

    @dg.asset(partitions_def=dg.StaticPartitionsDefinition(["orders", "billing"]))
    def step(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
        return cohorts.materialized(context, ["orders"], Settings(), describe)

    with dg.DagsterInstance.ephemeral() as instance:
        result = dg.materialize([step], instance=instance, partition_key="orders")
    (event,) = result.asset_materializations_for_node("step")
    assert event.metadata == {"not shown": dg.MetadataValue.text("KeyError: ('orders', 7)")}
