"""The demo's report of a group, for `report.json` and the terminal.

Belongs here: figures and their text. Belongs elsewhere: how they were measured (`run`).
"""

from collections.abc import Collection, Mapping
from typing import Any

from fairlead.domain.as_problem import Ownership, planned
from fairlead.domain.work_text import work_of_group
from fairlead.wire.document import PlanDocument

Row = Mapping[str, Any]
#: Maps each topic to a dict or an array with the lag of each partition, in records.
Lags = Mapping[str, Any]


def without_a_plan(group: str, diagnosed: Row, owned: Ownership) -> dict[str, Any]:
    """Return the report on a group that needs no plan."""
    return {
        "group": group,
        "assignor": None,
        "plan_version": None,
        **_diagnosis(diagnosed),
        "consumers": {name: {"partitions": owned[name]} for name in sorted(owned)},
    }


def with_a_plan(
    plan: PlanDocument,
    diagnosed: Row,
    *,
    before: Ownership,
    after: Ownership,
    lags_after: Lags,
    seconds: tuple[float, float],
) -> dict[str, Any]:
    """Return the report on a group before and after its plan.

    Parameters
    ----------
    plan
        The published plan. Its weights are the measured lags of the partitions, in records.
    diagnosed
        Before the plan: the planner's diagnosis and decision, and the work that consumers reported.
    before, after
        Owners as the consumers reported them, before the plan and after they adopted it.
    lags_after
        Lag after the group has worked under the plan for a while.
    seconds
        Seconds from the last arrival until all records were processed, without and with the plan.
    """
    stages = {"before": before, "predicted": planned(plan), "after": after}
    lags: dict[str, Lags] = {"before": plan.weights, "predicted": plan.weights, "after": lags_after}
    return {
        "group": plan.group,
        "assignor": plan.assignor,
        "plan_version": plan.version,
        **_diagnosis(diagnosed),
        "consumers": {
            name: {
                stage: {
                    "lag": _lag(lags[stage], owners.get(name, {})),
                    "partitions": owners.get(name, {}),
                }
                for stage, owners in stages.items()
            }
            for name in sorted(plan.members)
        },
        "adopted": same_owners(after, stages["predicted"]),
        "drain_seconds": {
            "without_plan": round(seconds[0], 2),
            "with_plan": round(seconds[1], 2),
        },
    }


def as_text(report: Row) -> str:
    """Return a report as text for people."""
    lines = [
        f"{report['diagnosis']}: {report['evidence']}",
        *(f"{label}: {text}" for label, text in report["work"].items()),
    ]
    if report["plan_version"] is None:
        lines = [f"Group {report['group']}: no plan", *lines, "It needs no plan."]
    else:
        by = f"plan version {report['plan_version']}, by {report['assignor']}"
        with_plan, without = (
            report["drain_seconds"][which] for which in ("with_plan", "without_plan")
        )
        drained = (
            f"Drained in {with_plan:.1f} s with the plan, {without:.1f} s without: "
            f"{without / with_plan:.2f} times as fast."
        )
        lines = [f"Group {report['group']}: {by}", *lines, drained]
    return "\n".join([*lines, ""])


def same_owners(actual: Ownership, planned_owners: Ownership) -> bool:
    """Whether the actual owners of all partitions are exactly the planned owners."""
    first, second = (
        {
            (name, topic, number)
            for name, owned in ownership.items()
            for topic, numbers in owned.items()
            for number in numbers
        }
        for ownership in (actual, planned_owners)
    )
    return first == second


def _diagnosis(diagnosed: Row) -> dict[str, Any]:
    reported = diagnosed["reported"]
    return {
        **{key: diagnosed[key] for key in ("diagnosis", "names", "evidence", "reason")},
        "seconds_per_record": reported.get("partitions", {}),
        "work": work_of_group(reported),
    }


def _lag(lags: Lags, owned: Mapping[str, Collection[int]]) -> int:
    """Return the lag of a set of partitions, in records."""
    return int(sum(lags[topic][number] for topic, numbers in owned.items() for number in numbers))
