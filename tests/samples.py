"""Rows of the table of samples, as tests write them.

Belongs here: filling in the columns that a test does not care about. Does not: how groups come
about (`recalled`).
"""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from fairlead.domain.samples import SAMPLES


def filled(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of the schema `SAMPLES`, with usual values for the columns that are missing.

    Parameters
    ----------
    row
        At least topics, counts and owner; without begin, end and committed nothing is known of
        offsets. Every member subscribes to all topics, unless `subscriptions` says otherwise.
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
    """Return rows as a table of samples, each `filled`."""
    return pa.Table.from_pylist([filled(row) for row in rows], SAMPLES)
