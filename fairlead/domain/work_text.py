"""Texts about reported work: the time per record, and how busy consumers are.

Belongs here: texts for a partition and for a group, and the median of a topic's partitions. Belongs
elsewhere: computing the figures of partitions and consumers
(`fairlead.domain.analysis.reported_work`), and the sentences of a diagnosis
(`fairlead.domain.analysis.work_words`).
"""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, Final

from fairlead.common.words import listed, milliseconds, percent
from fairlead.domain.figures import FIGURES

#: Maximum number of topics, of partitions and of consumers in a text.
_NAMED: Final = 3
#: Partitions are listed if their time per record is off the topic's median by at least this factor.
_DEVIATES: Final = 1.5


def time_per_record(row: Mapping[str, Any]) -> str | None:
    """Return the time per record of a partition as text; None if not known.

    Parameters
    ----------
    row
        `seconds_per_record`, `seconds_low` and `seconds_high`, as reported; and `cost`, which is
        used if nothing was reported.

    Examples
    --------
    >>> seconds = {"seconds_per_record": 0.0407, "seconds_low": 0.038, "seconds_high": 0.044}
    >>> time_per_record(seconds | {"cost": 8.1})
    '41 ms (38 to 44)'
    >>> time_per_record(dict.fromkeys(seconds) | {"cost": 8.1})
    'about 8.1 x usual'
    """
    if row["seconds_per_record"] is not None:
        return _interval(row["seconds_low"], row["seconds_per_record"], row["seconds_high"])
    return None if row["cost"] is None else _compared(0.0, row["cost"], 0.0)


def times_by_partition(
    reported: Mapping[str, Any], costs: Mapping[str, Mapping[str, Sequence[float]]]
) -> list[tuple[str, str]]:
    """Return partitions with their time per record, most expensive first.

    Parameters
    ----------
    reported, costs
        As in `fairlead.domain.records.Findings`. If no time of a partition is reported, its cost is
        used.

    Examples
    --------
    >>> times_by_partition({"partitions": {"t": {"3": [4e-3, 5e-3, 6e-3]}}}, {})
    [('t-3', '5.0 ms (4.0 to 6.0)')]
    """
    times = reported.get("partitions")
    times_and_texts = sorted(
        (-value, f"{topic}-{partition}", (_interval if times else _compared)(low, value, high))
        for topic, rows in (times or costs).items()
        for partition, (low, value, high) in rows.items()
    )
    return [(name, text) for _, name, text in times_and_texts]


def _compared(_low: float, value: float, _high: float) -> str:
    return f"about {value:.2g} x usual"


def _interval(low: float, value: float, high: float) -> str:
    least, most = (milliseconds(end).removesuffix(" ms") for end in (low, high))
    return milliseconds(value) + (f" ({least} to {most})" if least != most else "")


def work_of_group(reported: Mapping[str, Any]) -> dict[str, str]:
    """Return texts about a group's reported work by label; empty if its consumers do not report.

    Parameters
    ----------
    reported
        As in `fairlead.domain.records.Findings`.

    Examples
    --------
    >>> rows = {"0": [4.0e-3, 4.1e-3, 4.2e-3], "1": [0.038, 0.041, 0.044], "2": [4e-3, 4e-3, 4e-3]}
    >>> work_of_group({"partitions": {"t": rows}, "consumers": {"a": 0.61, "b": None}})
    {'Time per record': 't 4.1 ms, t-1 41 ms (38 to 44)', 'Busy': 'a 61.0 %, b unknown'}
    """
    topics, others = [], []
    for topic, rows in reported.get("partitions", {}).items():
        usual = median(mean for _, mean, _ in rows.values())
        topics.append((usual, f"{topic} {milliseconds(usual)}"))
        others += [
            (mean, f"{topic}-{partition} {_interval(low, mean, high)}")
            for partition, (low, mean, high) in rows.items()
            if not usual / _DEVIATES < mean < usual * _DEVIATES
        ]
    consumers = sorted(
        reported.get("consumers", {}).items(), key=lambda item: (-(item[1] or 0.0), item[0])
    )
    times = [
        listed([text for _, text in sorted(rows_of_kind, reverse=True)], at_most=_NAMED)
        for rows_of_kind in (topics, others)
    ]
    shares = [f"{name} {percent(share)}" for name, share in consumers]
    texts = {
        FIGURES["seconds_per_record"].label: ", ".join(filter(None, times)),
        FIGURES["busy"].label: listed(shares, at_most=_NAMED),
    }
    return {label: text for label, text in texts.items() if text}
