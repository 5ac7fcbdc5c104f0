"""What takes a group's time: costs and work of its partitions and topics, speeds of its members.

Belongs here: tables of one group. Does not: how costs and speeds are known (`fairlead.domain`).
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np

from assets.presentation import DECIMALS, table
from fairlead.common.words import moment

_WORK: Final = {
    "topic-partition": "Or a topic, all of its partitions together",
    "arrive/s": "Records a second",
    "cost": "What a record takes, in records of the group's usual kind; empty: assumed to be 1",
    "work/s": "What arrives, times what it takes",
}
_SPEEDS: Final = {
    "member": "Consumer",
    "records/s": "What it can do, in records of the kind that it reads",
    "known": "measured: it was at its limit; at least: it was not, and may do more",
    "seen": "When",
}


def work(row: Mapping[str, Any]) -> Any:
    """Show costs and work: topics, then the partitions with the most work.

    Parameters
    ----------
    row
        The row `observed` of a group's candidates.
    """
    told = json.loads(row["costs"] or "{}")
    rates = np.array(row["arrival_rates"], np.float64)
    ends = np.cumsum(row["partition_counts"])[:-1]
    topics, partitions = [], []
    for topic, mine in zip(row["topics"], np.split(rates, ends), strict=True):
        known = {int(number): cost for number, (_, cost, _) in told.get(topic, {}).items()}
        of_it = mine * [known.get(number, 1.0) for number in range(mine.size)]
        mean = float(of_it.sum() / mine.sum()) if known and mine.any() else None
        topics.append(_row(topic, mine.sum(), mean, of_it.sum()))
        partitions += [
            _row(f"{topic}-{number}", mine[number], known.get(number), of_it[number])
            for number in range(mine.size)
        ]
    partitions.sort(key=lambda partition: -partition["work/s"])
    return table(topics + partitions, _WORK)


def _row(name: str, arrive: float, cost: float | None, work_per_s: float) -> dict[str, Any]:
    return {
        "topic-partition": name,
        "arrive/s": round(float(arrive), DECIMALS),
        "cost": cost and round(cost, DECIMALS),
        "work/s": round(float(work_per_s), DECIMALS),
    }


def speeds(known: Sequence[Mapping[str, Any]]) -> Any:
    """Show what is known of members' speeds, the slowest first."""
    rows = [
        {
            "member": member["member"],
            "records/s": round(member["records_per_s"], DECIMALS),
            "known": "measured" if member["measured"] else "at least",
            "seen": moment(datetime.fromtimestamp(member["at"], UTC)),
        }
        for member in sorted(known, key=lambda member: member["records_per_s"])
    ]
    return table(rows, _SPEEDS)
