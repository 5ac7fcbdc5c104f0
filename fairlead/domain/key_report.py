"""The keys of a hot partition, and the effect of more partitions.

Belongs here: choosing a number of partitions, what consumers make of it, the verdict. Does not:
estimating shares and loads (`key_shares`), showing the report (`fairlead.surfaces.keys`). Pure.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from fairlead.common.words import percent, plural
from fairlead.domain.analysis.forecast import Outlook
from fairlead.domain.analysis.sizing import missing_members
from fairlead.domain.key_shares import KeyShares
from fairlead.domain.record_sample import Float64

Row = dict[str, Any]

#: Maximum number of keys in a report.
SHOWN: Final = 10
#: Numbers of partitions to try, as multiples of the present one.
_MULTIPLES: Final = (2, 3, 4, 6, 8, 12, 16)
#: Without a group, more partitions help if the largest one gets at most this share of today's
#: largest: half, and what a sample errs.
_RELIEF: Final = 0.55
#: Without a group, a key with a larger share of the largest partition cannot be relieved.
_MOST: Final = 2 / 3
#: Partitions are even if the largest one has at most this ratio to the mean.
_EVEN: Final = 1.2


@dataclass(frozen=True, eq=False)
class Readers:
    """The consumers of a topic with P partitions, as their group was last seen.

    Parameters
    ----------
    group
        The consumer group.
    capacities
        Capacity of each of M consumers, usual records a second, shape (M,).
    costs
        Cost of a record of each partition, in usual records, shape (P,).
    seconds
        Reported seconds per record, shape (P,); None: not all are known.
    backlog, behind_s
        Lag of each partition in records and in seconds, shape (P,).
    others
        Arrivals of each partition of the group's other topics, usual records a second.
    target, horizon_s
        Target utilisation; horizon of the forecast.
    """

    group: str
    capacities: Float64
    costs: Float64
    seconds: Float64 | None
    backlog: Float64
    behind_s: Float64
    others: Float64
    target: float
    horizon_s: float


def key_report(
    shares: KeyShares,
    *,
    partition: int | None = None,
    to: int | None = None,
    readers: Readers | None = None,
) -> Row:
    """Report on a sample.

    Parameters
    ----------
    partition
        Its keys are listed; None: those of the topic.
    to
        Number of partitions to compare with; None: the smallest that helps.
    readers
        The consumers; None: nothing is forecast.

    Returns
    -------
    topic, partition and group, as asked for; verdict, a sentence; keys, by `KeyShares.heaviest`;
    without_key, the share of records without a key; different, the number of keys in the
    sample; partitioner and placed, as `KeyShares.placement`; scenarios, the topic as it is and with
    more partitions: partitions, shares (of the records, of each), largest (of them), and today and
    wanted, as `consumers_under`, with the group's consumers and with as many as are wanted;
    records and seconds, of the window; sampled, bytes, took_s, reader and stopped, of the sample.
    """
    partitioner, placed = shares.placement
    sample = shares.sample
    now = _scenario(shares, shares.partitions, readers)
    scenarios = [now]
    if partitioner == "unknown":
        verdict = (
            f"Neither murmur2 nor CRC32 explains where the keys are ({percent(placed)} of them at "
            "best): what more partitions would give cannot be known."
        )
    else:
        then, verdict = _compare(shares, now, to, readers)
        scenarios.append(then)
    return {
        "topic": sample.window.topic,
        "partition": partition,
        "group": readers and readers.group,
        "verdict": verdict,
        "keys": shares.heaviest(SHOWN, partition),
        "without_key": shares.without_key,
        "different": len(shares.keys),
        "partitioner": partitioner,
        "placed": placed,
        "scenarios": scenarios,
        "records": round(float(shares.records.sum())),
        "seconds": sample.window.seconds,
        "sampled": int(shares.read.sum()),
        "bytes": sample.bytes,
        "took_s": sample.seconds,
        "reader": sample.reader,
        "stopped": sample.stopped,
    }


def _compare(
    shares: KeyShares, now: Row, to: int | None, readers: Readers | None
) -> tuple[Row, str]:
    """Return the topic with more partitions, and one sentence on what helps."""
    limit = _RELIEF * now["largest"]
    if readers is not None:  # what the fastest consumer takes, as it is planned
        usual = float((shares.records * readers.costs).sum())
        limit = readers.target * readers.capacities.max() * shares.sample.window.seconds / usual
    alone = max((key["share"] for key in shares.heaviest(1)), default=0.0)
    counts = [to] if to else [shares.partitions * each for each in _MULTIPLES]
    for count in counts:
        then = _scenario(shares, count, readers)
        if then["largest"] <= limit or alone > limit:
            break
    gives = (
        f"{plural(count, 'partition')} instead of {shares.partitions:,}: the largest gets "
        f"{percent(then['largest'])} of the records instead of {percent(now['largest'])}"
    )
    if not shares.keys:
        return then, "The records have no keys: their producers choose the partitions, not a hash."
    if alone > limit:
        known = readers is not None or alone > _MOST * now["largest"]
        helps = "cannot help" if known else "help little"
        return then, (
            f"One key alone is {percent(alone)} of the records: more partitions {helps}. {gives}."
        )
    if readers is not None and now["largest"] <= limit:
        return then, f"No partition gets more than a consumer can take. {gives}."
    if readers is None and now["largest"] * shares.partitions <= _EVEN:
        return then, f"The partitions are even: no key makes one of them hot. {gives}."
    return then, f"{gives}{'' if then['largest'] <= limit else ', which is not enough'}."


def _scenario(shares: KeyShares, count: int, readers: Readers | None) -> Row:
    """Return what a number of partitions gives; the present number is as it was measured."""

    def load(worth: Float64) -> Float64:
        present = count == shares.partitions
        return shares.records * worth if present else shares.load_of(count, worth)

    parts = load(np.ones(shares.partitions)) / max(float(shares.records.sum()), 1e-9)
    found: Row = {"partitions": count, "shares": parts.tolist(), "largest": float(parts.max())}
    if readers is None:
        return found | {"today": None, "wanted": None}
    loads = load(readers.costs) / shares.sample.window.seconds
    usual = float(np.median(readers.capacities))
    every = np.append(loads, readers.others)
    number = max(missing_members(every, np.zeros(0), readers.target * usual), 1)
    return found | {
        "today": consumers_under(loads, readers, readers.capacities),
        "wanted": consumers_under(loads, readers, np.full(number, usual)),
    }


def consumers_under(loads: Float64, readers: Readers, capacities: Float64) -> Row:
    """Forecast consumers that share partitions with these loads as evenly as they can be dealt.

    Records that wait stay in the partitions that have them today.

    Parameters
    ----------
    loads
        Usual records a second that each of the topic's N partitions gets, shape (N,).
    capacities
        Of the consumers, in usual records a second, shape (M,).

    Returns
    -------
    count, of consumers; utilisation, of the most utilised one; time_lag_s, at the horizon.
    """
    arrivals = np.append(loads, readers.others)
    backlog, behind_s = np.zeros((2, arrivals.size))
    backlog[: readers.backlog.size] = readers.backlog * readers.costs
    behind_s[: readers.behind_s.size] = readers.behind_s
    owner, taken = np.zeros(arrivals.size, np.int32), np.zeros(capacities.size)
    for place in np.argsort(-arrivals, kind="stable").tolist():  # where it leaves most room
        owner[place] = ((taken + arrivals[place]) / capacities).argmin()
        taken[owner[place]] += arrivals[place]
    outlook = Outlook(arrivals, np.zeros(arrivals.size), backlog, behind_s, capacities)
    found = outlook.forecast(owner, readers.horizon_s)
    return {
        "count": capacities.size,
        "utilisation": found.utilisation,
        "time_lag_s": found.time_lag_s,
    }
