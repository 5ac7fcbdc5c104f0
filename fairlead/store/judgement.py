"""What the judgement remembers of groups: speeds of members, diagnoses.

Belongs here: reading both, and handing them to the database's functions. Does not: transactions
(`plans`), nor what becomes of a diagnosis that holds (`migrations/sql/judgement.sql`).
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import Connection, Text, cast, func, literal, select
from sqlalchemy.dialects.postgresql import JSONB

from fairlead.domain.judgement.capacities import Capacity
from fairlead.domain.records import Findings

#: What a capacity was seen by.
_EVIDENCE: Final = {
    True: "it stayed behind throughout, and consumed so much",
    False: "it consumed so much without being behind throughout: it can do more",
}


def record_findings(
    connection: Connection, found: Mapping[str, tuple[datetime, Findings]], *, capacities: bool
) -> None:
    """Store what judgements say of groups, which are registered.

    Parameters
    ----------
    found
        Group to when it was looked at, and what was found.
    capacities
        Whether what is known of members is replaced, too.
    """
    if not found:
        return
    seen = [_diagnosis(group, at, findings) for group, (at, findings) in found.items()]
    connection.execute(select(func.fairlead_raw.record_diagnoses(_json(seen))))
    if capacities:
        known = {
            group: {name: _capacity(one) for name, one in findings.capacities.items()}
            for group, (_, findings) in found.items()
        }
        connection.execute(select(func.fairlead_raw.record_capacities(_json(known))))


def _diagnosis(group: str, at: datetime, findings: Findings) -> dict[str, Any]:
    return {
        "group_id": group,
        "at": at.isoformat(),
        "diagnosis": findings.diagnosis,
        "names": list(findings.names),
        "evidence": findings.evidence,
        "late_s": findings.late_s,
        "utilisation": findings.utilisation,
    }


def _capacity(one: Capacity) -> dict[str, Any]:
    return {
        "records_per_s": one.records_per_s,
        "measured": one.measured,
        "measured_at": datetime.fromtimestamp(one.at, UTC).isoformat(),
        "evidence": _EVIDENCE[one.measured],
    }


def _json(value: Any) -> Any:
    return cast(literal(json.dumps(value), Text), JSONB)
