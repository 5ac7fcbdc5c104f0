"""The figures of groups, members, partitions and plans: name, label, unit, meaning and format.

Belongs here: one entry for each figure, which all pages, commands, metrics and views use. Belongs
elsewhere: computing figures, except the short functions `adherence` and `imbalance`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from fairlead.common.words import gigabytes, length, milliseconds, number, percent, rate, times

_FORMATS: Final[Mapping[str, Callable[[Any], str | None]]] = {
    "seconds": length,
    "seconds a record": milliseconds,
    "share": percent,
    "ratio": times,
    "records": number,
    "records a second": rate,
    "partitions": number,
    "consumers": number,
    "gigabytes a day": gigabytes,
    "money a day": "{:,.2f}".format,
    "": number,
}


@dataclass(frozen=True)
class Figure:
    """A figure that is shown in several places, such as pages, commands and metrics.

    Parameters
    ----------
    name
        Column in SQL, key in JSON.
    label
        Heading on pages, in tables of commands and in Dagster.
    unit
        A key of `_FORMATS`; "" for a plain number.
    meaning
        One sentence, used as SQL comment, as help of the metric, as hint on pages, and in the docs.
    none
        The text that people see if there is no value.
    """

    name: str
    label: str
    unit: str
    meaning: str
    none: str = "unknown"

    def text(self, value: Any) -> str:
        """Format a value for people.

        Examples
        --------
        >>> FIGURES["forecast_time_lag_s"].text(1800.0), FIGURES["utilisation"].text(1.148)
        ('30 min', '114.8 %')
        >>> FIGURES["loss_s"].text(None), FIGURES["lag"].text(1_234_567)
        ('none', '1,234,567')
        """
        return self.none if value is None else str(_FORMATS[self.unit](value))


# fmt: off
_ALL: Final = (
    # Forecasts for a group. The first three are also computed for candidates.
    Figure("forecast_time_lag_s", "Forecast lag", "seconds",
        "Forecast time lag of the worst partition at the policy's horizon."),
    Figure("utilisation", "Most utilised consumer", "share",
        "Arrival rate of the most utilised consumer, as a share of its capacity; above 1, its "
        "lag grows."),
    Figure("catch_up_s", "Caught up", "seconds", none="never",
        meaning="Time until the group is within its objective; 0 if it already is, no value if "
        "never."),
    Figure("loss_s", "Records lost", "seconds", none="none",
        meaning="Time until retention deletes records that the group has not read; no value if "
        "never."),
    Figure("consumers_wanted", "Consumers needed", "consumers",
        "Fewest consumers that keep up with the present load; no value if unknown, or if more "
        "consumers do not help."),
    # Measured figures of a group.
    Figure("lag", "Lag", "records",
        "Records that the group has yet to read, by the rule of KAFKA-5337."),
    Figure("behind_now_s", "Behind now", "seconds",
        "How far behind the worst partition was in the last sample."),
    Figure("lag_now", "Lag now", "records", "Lag of all partitions in the last sample."),
    Figure("lag_max_now", "Most loaded consumer now", "records",
        "Lag of the most loaded consumer in the last sample."),
    Figure("rebalances", "Rebalances", "",
        "Samples in which owners, members, topics or partition counts had changed."),
    # Figures of an assignment: the present one, a candidate or a plan.
    Figure("count_min", "Fewest partitions", "partitions", "Fewest partitions of a consumer."),
    Figure("count_max", "Most partitions", "partitions", "Most partitions of a consumer."),
    Figure("balance_score", "Balance score", "",
        "KIP-54: sum of the pairwise differences of partition counts; 0 is even."),
    Figure("lag_max", "Most loaded consumer", "records",
        "Records that the most loaded consumer has to read."),
    Figure("lag_mean", "Mean load", "records", "Records that a consumer has to read, on average."),
    Figure("lag_lower_bound", "Lower bound", "records",
        "No assignment gives the most loaded consumer fewer records."),
    Figure("gap", "Above bound", "share",
        "Excess of the most loaded consumer over the lower bound; 0 is best."),
    Figure("imbalance", "Imbalance", "ratio",
        "Load of the most loaded consumer, divided by the mean of all; 1 is even."),
    Figure("kept", "Kept", "partitions", "Partitions that stay with their owner."),
    Figure("moved", "Moved", "partitions", "Partitions taken from an owner that is present."),
    Figure("placed", "Placed", "partitions",
        "Assigned partitions that had no owner, or an absent owner."),
    Figure("topic_spread", "Worst topic", "ratio",
        "Largest share of a topic on one consumer, divided by the even share; 1 is even."),
    Figure("rack_gb_per_day", "Cross-rack traffic a day", "gigabytes a day",
        "Gigabytes a day that consumers read from other racks, on average."),
    Figure("rack_cost_per_day", "Cross-rack cost a day", "money a day",
        "Daily cost of reading from other racks, at the price in the policy."),
    Figure("adherence", "Followed", "share",
        "Share of the plan's partitions that were with their planned consumer when owners were "
        "last read; 1 only if all were."),
    # Figures of a partition or a member.
    Figure("time_lag_s", "Behind", "seconds",
        "How long ago the next record to be read was written."),
    Figure("arrival_rate", "Arriving", "records a second", "Records written a second."),
    Figure("consumption_rate", "Read", "records a second", "Records read a second."),
    Figure("lost", "Lost", "records", "Records deleted before the group read them."),
    Figure("seconds_per_record", "Time per record", "seconds a record",
        "Processing time of a record on its present consumer, as reported over the last hour."),
    Figure("time_share", "Share of time", "share",
        "Share of one consumer's time that the arriving records take: arrival rate times time per "
        "record."),
    Figure("capacity_share", "Share of capacity", "share",
        "Share of the consumer's capacity that the arriving records of a partition need."),
    Figure("busy", "Busy", "share",
        "Share of time in which a consumer did not wait for records, as reported over the last "
        "hour."),
    Figure("cost", "Relative time per record", "ratio",
        "Processing time of a record, as a multiple of the usual time in the group."),
    Figure("records_per_s", "Capacity", "records a second",
        "Maximum read rate of a member, or a lower bound of that rate."),
)
# fmt: on
FIGURES: Final[Mapping[str, Figure]] = {figure.name: figure for figure in _ALL}

#: Suffixes of column names, and their meaning. The file views.sql has columns with these suffixes.
_WHICH: Final = {
    "worst": "Worst of the day",
    "before": "Before the plan",
    "predicted": "As the plan predicts",
    "achieved": "As last measured under the plan",
}


def figure(column: str) -> Figure:
    """Return the figure that a column shows. The column's name may have a suffix such as `_before`.

    Examples
    --------
    >>> figure("forecast_time_lag_before").label, figure("imbalance_worst").meaning[:25]
    ('Forecast lag, before', 'Worst of the day: Load of')
    """
    if column in FIGURES:
        return FIGURES[column]
    name, _, which = column.rpartition("_")
    base = FIGURES.get(name) or FIGURES[f"{name}_s"]
    meaning = f"{_WHICH[which]}: {base.meaning}"
    return replace(base, name=column, label=f"{base.label}, {which}", meaning=meaning)


def adherence(as_planned: int, planned: int) -> float | None:
    """Return the share of planned partitions that have their planned owner; 1 only if all have.

    Examples
    --------
    >>> adherence(2, 3), adherence(99_999, 100_000), adherence(0, 0)
    (0.6666, 0.9999, None)
    """
    return as_planned * 10_000 // planned / 10_000 if planned else None


def imbalance(metrics: Mapping[str, Any]) -> float | None:
    """Return the most loaded consumer's load divided by the mean load; None without load.

    Examples
    --------
    >>> imbalance({"lag_max": 300, "lag_mean": 200.0}), imbalance({"lag_max": 0, "lag_mean": 0.0})
    (1.5, None)
    """
    mean = float(metrics["lag_mean"] or 0.0)
    return round(float(metrics["lag_max"]) / mean, 3) if mean else None
