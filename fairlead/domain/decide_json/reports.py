"""Parse the reports of work in a line of `fairlead decide`.

Belongs here: the format of reports. Belongs elsewhere: parsing the rest of a line (`lines`), and
ignoring impossible reports (`reported_work`).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from assignors.problem import InvalidProblemError, Problem
from fairlead.common.json_lines import an_object, brief, check_keys
from fairlead.domain.analysis.reported_work import ReportSeries
from fairlead.domain.analysis.sample_series import NONE
from fairlead.domain.decide_json.memory import moment

_OF_PARTITION: Final = {"records": "records", "busy_s": "busy_s", "busy_squares_s2": "squares_s2"}
_OF_CONSUMER: Final = ("elapsed_s", "waiting_s", "handler_s")
#: Larger counters are treated as unknown, because their squares could overflow.
_LARGEST: Final = 1e15
_KEYS: Final = frozenset({"partitions", "consumers"})
_CONSUMER_KEYS: Final = frozenset({"token", *_OF_CONSUMER, "calls", "paused", "at"})
_PARTITION_KEYS: Final = frozenset({"consumer", *_OF_PARTITION})


def reports_of(
    snapshots: Sequence[Mapping[str, Any]], layout: Problem, members: int
) -> ReportSeries | None:
    """Return the reports of work in snapshots; None if no snapshot has any.

    Parameters
    ----------
    layout
        Partitions and present members. Reports of other consumers are ignored.
    members
        Number of members in `SampleSeries`; the present members come first.

    Raises
    ------
    InvalidProblemError
        A value has the wrong type; the message names the value.
    """
    if not members or not any(snapshot.get("reports") for snapshot in snapshots):
        return None
    size, wide = (len(snapshots), layout.partition_total), (len(snapshots), members)
    of_partition = {name: np.full(size, np.nan) for name in _OF_PARTITION.values()}
    of_consumer = {name: np.full(wide, np.nan) for name in (*_OF_CONSUMER, "paused")}
    by, token = np.full(size, NONE, np.int32), np.full(wide, NONE, np.int64)
    numbers = {name: number for number, name in enumerate(layout.members)}
    tokens: dict[tuple[int, str], int] = {}
    for snapshot_number, snapshot in enumerate(snapshots):
        where = f"snapshots[{snapshot_number}].reports"
        reports = an_object(snapshot.get("reports") or {}, where)
        check_keys(reports, _KEYS, required=(), where=f"{where}.")
        consumers = an_object(reports.get("consumers") or {}, f"{where}.consumers")
        for name, row in consumers.items():
            who, at = numbers.get(name), f"{where}.consumers.{name}"
            check_keys(an_object(row, at), _CONSUMER_KEYS, required=("token", "at"), where=f"{at}.")
            if not isinstance(row["token"], str):
                raise InvalidProblemError(f"{at}.token: {brief(row['token'])} is not a string")
            moment(row["at"], f"{at}.at")
            _number(row.get("calls"), f"{at}.calls")
            if who is None:
                continue
            token[snapshot_number, who] = tokens.setdefault((who, row["token"]), len(tokens))
            for key in _OF_CONSUMER:
                of_consumer[key][snapshot_number, who] = _number(row.get(key), f"{at}.{key}")
            of_consumer["paused"][snapshot_number, who] = _number(
                row.get("paused", 0), f"{at}.paused"
            )
        for place, row, at in _rows(reports.get("partitions"), layout, f"{where}.partitions"):
            name = row["consumer"]
            by[snapshot_number, place] = numbers.get(name, NONE) if isinstance(name, str) else NONE
            for key, column in _OF_PARTITION.items():
                of_partition[column][snapshot_number, place] = _number(row.get(key), f"{at}.{key}")
    return ReportSeries(by=by, token=token, **of_partition, **of_consumer)


def _rows(topics: Any, layout: Problem, where: str) -> Iterator[tuple[int, Mapping[str, Any], str]]:
    """Yield index, report and name (for error messages) of each partition with a report."""
    for place, rows, name in by_topic(topics, layout, where, exact=False):
        for partition, row in enumerate(rows):
            if row is not None:
                at = f"{name}[{partition}]"
                check_keys(
                    an_object(row, at), _PARTITION_KEYS, required=("consumer",), where=f"{at}."
                )
                yield place.start + partition, row, at


def by_topic(
    value: Any, layout: Problem, where: str, *, exact: bool
) -> list[tuple[slice, list[Any], str]]:
    """Return the values of each existing topic, with the slice of its partitions, and its name.

    The name is for error messages. Values of deleted topics and partitions are left out. If
    `exact`, it is an error if a topic has more values than partitions. If a topic has grown since
    the sample, only its first partitions have values.
    """
    rows = []
    values = {} if value is None else an_object(value, where)
    for number, topic in enumerate(layout.topics):
        row = values.get(topic)
        if row is None:
            continue
        count = int(layout.partition_counts[number])
        if not isinstance(row, list):
            raise InvalidProblemError(f"{where}.{topic}: {brief(row)} is not a list")
        if exact and len(row) > count:
            raise InvalidProblemError(f"{where}.{topic}: {len(row)} values for {count} partitions")
        row = row[:count]
        first = int(layout.topic_offsets[number])
        rows.append((slice(first, first + len(row)), row, f"{where}.{topic}"))
    return rows


def _number(value: Any, where: str) -> float:
    if value is None:
        return np.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidProblemError(f"{where}: {brief(value)} is not a number")
    return float(value) if -_LARGEST <= value <= _LARGEST else np.nan
