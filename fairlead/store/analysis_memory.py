"""Memory of the analysis: speeds of members, diagnoses, and the times at which plans took effect.

Belongs here: reading the memory, and passing findings to the database's functions. Belongs
elsewhere: how these functions update the stored diagnoses (`migrations/sql`).
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, Engine, func, literal, select, text
from sqlalchemy.dialects.postgresql import JSONB

from fairlead.domain.analysis.capacities import Capacity
from fairlead.domain.analysis.rules import MOST_PLANS
from fairlead.domain.group_memories import GroupMemories
from fairlead.domain.plan_requests import PlanRequest, StandingRequest
from fairlead.domain.records import Findings
from fairlead.store.engine import transaction
from fairlead.store.group_history import last_samples

_CAPACITIES: Final = text("""
    SELECT group_id, member, records_per_s, measured, measured_at
    FROM fairlead_raw.member_capacity WHERE group_id = ANY(:groups)
""")
_COSTS: Final = text("""
    SELECT group_id, costs FROM fairlead_raw.group_diagnosis
    WHERE group_id = ANY(:groups) AND until IS NULL AND costs <> '{}'
""")
_CALLS: Final = text("""
    SELECT group_id, called_for, call_reason, called_since, called_at
    FROM fairlead_raw.group_diagnosis
    WHERE until IS NULL AND called_for IS NOT NULL AND called_at >= now() - :age
    ORDER BY forecast_time_lag_s DESC NULLS LAST, group_id
""")
#: Times at which each group's newest versions were published or withdrawn. `state DESC` orders a
#: version's withdrawal before its publication, because the withdrawal is newer.
_CHANGES: Final = text("""
    SELECT consumer_group.group_id, newest.at
    FROM fairlead_raw.consumer_group,
        LATERAL (
            SELECT at, version, state FROM fairlead_raw.plan_event
            WHERE plan_event.group_id = consumer_group.group_id
                AND state IN ('published', 'withdrawn')
            ORDER BY version DESC, state DESC LIMIT :most
        ) AS newest
    WHERE consumer_group.group_id = ANY(:groups)
    ORDER BY newest.version, newest.state
""")

#: Fields of findings for which the table of diagnoses has no column of the same name.
_ELSEWHERE: Final = {"capacities", "seen", "kept", "remembered_costs"}


def read_memories(connection: Connection, groups: list[str]) -> GroupMemories:
    """Return what is stored about groups: speeds, costs, times of plans, and newest samples."""
    capacities: dict[str, dict[str, Capacity]] = {}
    for row in connection.execute(_CAPACITIES, {"groups": groups}):
        known = Capacity(row.records_per_s, row.measured, row.measured_at.timestamp())
        capacities.setdefault(row.group_id, {})[row.member] = known
    changes: dict[str, list[datetime]] = {}
    for row in connection.execute(_CHANGES, {"groups": groups, "most": MOST_PLANS}):
        changes.setdefault(row.group_id, []).append(row.at)
    costs = {row.group_id: row.costs for row in connection.execute(_COSTS, {"groups": groups})}
    return GroupMemories(capacities, changes, last_samples(connection, groups), costs)


def standing_requests(engine: Engine, age: timedelta) -> dict[str, StandingRequest]:
    """Return the plan requests of groups, the group with the largest forecast lag first.

    Leaves out requests older than `age`, by the database's clock.
    """
    with transaction(engine) as connection:
        return {
            group: StandingRequest(PlanRequest(what, why), since, at)
            for group, what, why, since, at in connection.execute(_CALLS, {"age": age})
        }


def record_findings(
    connection: Connection,
    findings_by_group: Mapping[str, tuple[datetime, Findings]],
    *,
    requests: Mapping[str, PlanRequest] | None = None,
) -> None:
    """Store the findings of analyses; the groups must be registered.

    Parameters
    ----------
    findings_by_group
        Maps each group to the time of its sample, and its findings.
    requests
        If the findings are from a sample: maps each group that needs a plan to its plan request.
        Stored requests of the other groups in `findings_by_group` are deleted. If the findings are
        from a planning run: None. Then stored requests do not change, and the stored speeds of
        members are replaced.
    """
    if not findings_by_group:
        return
    rows = [
        {name: value for name, value in vars(findings).items() if name not in _ELSEWHERE}
        | {"group_id": group, "at": at.isoformat(), "costs": findings.remembered_costs}
        | _request(None if requests is None else requests.get(group))
        | {"looked": requests is not None}
        for group, (at, findings) in findings_by_group.items()
    ]
    connection.execute(select(func.fairlead_raw.record_diagnoses(literal(rows, JSONB))))
    if requests is None:
        known = {
            group: [_capacity(*of_member) for of_member in findings.capacities.items()]
            for group, (_, findings) in findings_by_group.items()
        }
        connection.execute(select(func.fairlead_raw.record_capacities(literal(known, JSONB))))


def _request(request: PlanRequest | None) -> dict[str, Any]:
    return {} if request is None else {"called_for": request.what, "call_reason": request.why}


def _capacity(member: str, capacity: Capacity) -> dict[str, Any]:
    return {
        "member": member,
        "records_per_s": capacity.records_per_s,
        "measured": capacity.measured,
        "measured_at": datetime.fromtimestamp(capacity.at, UTC).isoformat(),
    }
