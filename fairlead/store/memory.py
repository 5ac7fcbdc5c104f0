"""What is remembered of groups: how fast their members are, when a plan last took effect.

Belongs here: these two questions, which `fairlead plan --dry-run` asks as runs do; it must not wait
for the models' import. Does not: writing either down (`judgement`, `plans`).
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, text

from fairlead.domain.judgement.capacities import Capacity

_CAPACITIES: Final = text("""
    SELECT group_id, member, records_per_s, measured, measured_at
    FROM fairlead_raw.member_capacity WHERE group_id = ANY(:groups)
""")
# Of the highest version, and there a retirement comes after the publication.
_CHANGES: Final = text("""
    SELECT consumer_group.group_id, newest.at
    FROM fairlead_raw.consumer_group,
        LATERAL (
            SELECT at FROM fairlead_raw.plan_event
            WHERE plan_event.group_id = consumer_group.group_id
                AND state IN ('published', 'retired')
            ORDER BY version DESC, state DESC LIMIT 1
        ) AS newest
    WHERE consumer_group.group_id = ANY(:groups)
""")


def known_capacities(
    connection: Connection, groups: Iterable[str]
) -> dict[str, dict[str, Capacity]]:
    """Return what is known of the members of groups, by group and member."""
    found: dict[str, dict[str, Capacity]] = {}
    for row in connection.execute(_CAPACITIES, {"groups": list(groups)}):
        known = Capacity(row.records_per_s, row.measured, row.measured_at.timestamp())
        found.setdefault(row.group_id, {})[row.member] = known
    return found


def last_changes(connection: Connection, groups: Iterable[str]) -> dict[str, datetime]:
    """Return when a plan of each group was last published or retired; never: it is missing."""
    rows = connection.execute(_CHANGES, {"groups": list(groups)})
    return {row.group_id: row.at for row in rows}
