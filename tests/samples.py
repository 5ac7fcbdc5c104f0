"""Rows of the table of samples, with default values for columns that a test does not set."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa

from fairlead.domain.samples import SAMPLES, GroupSnapshot, new_snapshot_id


def filled(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of the schema `SAMPLES`, with default values for missing columns.

    Parameters
    ----------
    row
        At least `topics` and `counts`. By default, offsets and owners are unknown, and every member
        subscribes to all topics.
    """
    members, topics = list(row.get("members") or ()), list(row["topics"])
    unknown = [-1] * sum(row["counts"])
    return {
        "group": "g",
        "sample_id": "s",
        "state": "Stable" if members else "Empty",
        "protocol": "range",
        "group_type": "classic",
        "topic_ids": [None] * len(topics),
        "begin": unknown,
        "end": unknown,
        "committed": unknown,
        "owner": unknown,
        "members": members,
        "member_ids": [f"{name}-id" for name in members],
        "client_ids": members,
        "instance_ids": [None] * len(members),
        "member_racks": [None] * len(members),
        "generations": [None] * len(members),
        "subscriptions": [topics] * len(members),
        **row,
    }


def samples(*rows: Mapping[str, Any]) -> pa.Table:
    """Return a table of samples from rows, each completed by `filled`."""
    return pa.Table.from_pylist([filled(row) for row in rows], SAMPLES)


def snapshot(*rows: Mapping[str, Any], at: datetime) -> GroupSnapshot:
    """Return a snapshot with the given time, from rows completed by `filled`, sorted by group."""
    sample_id = new_snapshot_id(at)
    key = {"sample_id": sample_id, "at": at}
    taken = samples(*({**key, **row} for row in rows)).sort_by("group")
    return GroupSnapshot(sample_id, at, 0.0, taken)
