"""Memory of the analysis: speeds of members, diagnoses, and the times at which plans took effect.

Belongs here: reading the memory, and passing findings to the database's functions. Does not:
transactions (`plans`), nor the update of a diagnosis that persists (`migrations/sql`).
"""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, Text, cast, func, literal, select, text
from sqlalchemy.dialects.postgresql import JSONB

from fairlead.domain.analysis.capacities import Capacity
from fairlead.domain.analysis.costs import CostRows
from fairlead.domain.analysis.rules import MOST_PLANS
from fairlead.domain.plan_requests import PlanRequest, StandingRequest
from fairlead.domain.records import Findings

#: Evidence of a capacity, by whether it was measured at the member's limit.
_EVIDENCE: Final = {
    True: "read at this rate with a backlog all the time",
    False: "read at this rate, not always with a backlog: the capacity is at least this",
}

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
#: Times of the steps of the highest versions. `state DESC`: a version's withdrawal is newer than
#: its publication.
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

#: Fields of findings that are not columns of diagnoses with the same name.
_ELSEWHERE: Final = {"capacities", "seen", "kept", "remembered_costs"}


def known_capacities(
    connection: Connection, groups: Iterable[str]
) -> dict[str, dict[str, Capacity]]:
    """Return the stored speeds of groups' members, by group and member."""
    capacities: dict[str, dict[str, Capacity]] = {}
    for row in connection.execute(_CAPACITIES, {"groups": list(groups)}):
        at = row.measured_at.timestamp()
        known = Capacity(row.records_per_s, row.measured, at)
        capacities.setdefault(row.group_id, {})[row.member] = known
    return capacities


def known_costs(connection: Connection, groups: Iterable[str]) -> dict[str, CostRows]:
    """Return the remembered costs of groups; those without any are missing."""
    rows = connection.execute(_COSTS, {"groups": list(groups)})
    return {row.group_id: row.costs for row in rows}


def last_changes(connection: Connection, groups: Iterable[str]) -> dict[str, list[datetime]]:
    """Return the times of groups' last publications and withdrawals; groups with none are missing.

    Ascending by version, at most `MOST_PLANS` per group.
    """
    changes: dict[str, list[datetime]] = {}
    for row in connection.execute(_CHANGES, {"groups": list(groups), "most": MOST_PLANS}):
        changes.setdefault(row.group_id, []).append(row.at)
    return changes


def standing_requests(connection: Connection, age: timedelta) -> dict[str, StandingRequest]:
    """Return the plan requests of samples at most this old by the database's clock, by group."""
    return {
        row.group_id: StandingRequest(
            PlanRequest(row.called_for, row.call_reason),
            row.called_since,
            row.called_at,
        )
        for row in connection.execute(_CALLS, {"age": age})
    }


def record_findings(
    connection: Connection,
    findings_by_group: Mapping[str, tuple[datetime, Findings]],
    *,
    requests: Mapping[str, PlanRequest] | None = None,
) -> None:
    """Store the findings of analyses; the groups are registered.

    Parameters
    ----------
    findings_by_group
        Group to the time of its sample, and its findings.
    requests
        Plan requests of a sample; the other groups have none. None: findings of a planning run,
        which also replaces the members' speeds, and keeps the stored requests.
    """
    if not findings_by_group:
        return
    samples = [
        _diagnosis(group, at, findings)
        | _request(None if requests is None else requests.get(group))
        | {"looked": requests is not None}
        for group, (at, findings) in findings_by_group.items()
    ]
    connection.execute(select(func.fairlead_raw.record_diagnoses(_json(samples))))
    if requests is None:
        known = {
            group: {name: _capacity(capacity) for name, capacity in findings.capacities.items()}
            for group, (_, findings) in findings_by_group.items()
        }
        connection.execute(select(func.fairlead_raw.record_capacities(_json(known))))


def _diagnosis(group: str, at: datetime, findings: Findings) -> dict[str, Any]:
    columns = {name: value for name, value in vars(findings).items() if name not in _ELSEWHERE}
    costs = findings.remembered_costs
    return {"group_id": group, "at": at.isoformat(), **columns, "costs": costs}


def _request(request: PlanRequest | None) -> dict[str, Any]:
    if request is None:
        return {}
    return {"called_for": request.what, "call_reason": request.why}


def _capacity(capacity: Capacity) -> dict[str, Any]:
    return {
        "records_per_s": capacity.records_per_s,
        "measured": capacity.measured,
        "measured_at": datetime.fromtimestamp(capacity.at, UTC).isoformat(),
        "evidence": _EVIDENCE[capacity.measured],
    }


def _json(value: Any) -> Any:
    return cast(literal(json.dumps(value), Text), JSONB)
