"""What to do about a hot partition: its keys, and what more partitions would give.

Belongs here: choosing a number of partitions, what consumers make of it, the verdict. Does not:
estimating shares and loads (`key_shares`), showing the report (`fairlead.surfaces.keys`). Pure.
"""

from dataclasses import dataclass
from hashlib import sha256
from typing import Final

import numpy as np

from fairlead.common.words import percent, plural
from fairlead.domain.judgement.forecast import Outlook
from fairlead.domain.judgement.sizing import missing_members
from fairlead.domain.key_shares import HeavyKey, KeyShares, Partitioner
from fairlead.domain.record_sample import Float64

#: Heavy keys in a report.
SHOWN: Final = 10
#: Numbers of partitions that are tried, in multiples of the present one.
_MULTIPLES: Final = (2, 3, 4, 6, 8, 12, 16)
#: Without a group, more partitions help if the largest one gets at most this share of today's
#: largest: half, and what a sample errs.
_RELIEF: Final = 0.55
#: A key that is a larger share of the largest partition cannot be relieved.
_MOST: Final = 0.75
#: A partition is even with the others up to this ratio to the mean.
_EVEN: Final = 1.2


@dataclass(frozen=True, eq=False)
class Readers:
    """The consumers of a topic, as a group was last seen.

    Parameters
    ----------
    group
        The consumer group.
    capacities
        What each of M consumers can take, in records of the usual kind a second, shape (M,).
    costs
        Usual records that one of each partition of the topic takes, shape (P,).
    seconds
        Reported seconds per record, shape (P,); None: not all are known.
    backlog, behind_s
        Records that wait in each partition of the topic, and how far behind it is, shape (P,).
    others
        What the group's other partitions get, in usual records a second.
    target
        Share of a consumer's capacity that is planned with.
    horizon_s, objective_s
        How far ahead the lag is forecast; how much lag is accepted.
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
    objective_s: float

    @property
    def room(self) -> float:
        """What a partition may get at most: what the fastest consumer takes, as it is planned."""
        return self.target * float(self.capacities.max())


@dataclass(frozen=True)
class Consumers:
    """What so many consumers would make of a number of partitions.

    Parameters
    ----------
    count
        Consumers.
    utilisation, time_lag_s
        Of the most utilised consumer, and of the worst partition at the horizon.
    """

    count: int
    utilisation: float
    time_lag_s: float


@dataclass(frozen=True)
class Scenario:
    """A number of partitions and what it would give.

    Parameters
    ----------
    partitions
        How many.
    shares
        Of the records in each.
    today, wanted
        With the group's consumers, and with as many as are wanted; None: they are not known.
    """

    partitions: int
    shares: tuple[float, ...]
    today: Consumers | None = None
    wanted: Consumers | None = None

    @property
    def largest(self) -> float:
        """Share of the largest partition."""
        return max(self.shares)


@dataclass(frozen=True)
class KeyReport:
    """What is known of a topic's keys.

    Parameters
    ----------
    topic, partition, group
        What was asked about; None: all partitions, no group.
    verdict
        One sentence: what helps.
    keys
        Heaviest first.
    without_key, different
        Share of records without a key; number of different keys in the sample.
    partitioner, placed
        The producers' partitioner, and the share of the sampled keys that it explains.
    now, then
        The topic as it is, and with more partitions; None: cannot be known.
    records, seconds
        In the window, and how long that is.
    sampled, bytes, took_s, reader, stopped
        Records and bytes read, how long that took, by what, and the limit that ended it.
    """

    topic: str
    partition: int | None
    group: str | None
    verdict: str
    keys: tuple[HeavyKey, ...]
    without_key: float
    different: int
    partitioner: Partitioner
    placed: float
    now: Scenario
    then: Scenario | None
    records: int
    seconds: float
    sampled: int
    bytes: int
    took_s: float
    reader: str
    stopped: str


def key_report(
    shares: KeyShares,
    *,
    partition: int | None = None,
    to: int | None = None,
    readers: Readers | None = None,
) -> KeyReport:
    """Report on a sample.

    Parameters
    ----------
    partition
        Its keys are listed; None: those of the topic.
    to
        Number of partitions to compare with; None: the smallest that helps.
    readers
        The consumers; None: nothing is forecast.
    """
    keys = tuple(shares.heaviest(SHOWN, partition))
    partitioner, placed = shares.placement
    now = _scenario(shares, shares.partitions, readers, present=True)
    then, verdict = None, ""
    if partitioner == "unknown":
        verdict = (
            f"Neither murmur2 nor CRC32 explains where the keys are ({percent(placed)} of them at "
            "best): what more partitions would give cannot be known."
        )
    else:
        counts = [to] if to else [shares.partitions * each for each in _MULTIPLES]
        tried = (_scenario(shares, count, readers) for count in counts)
        limit = _limit(shares, now, readers)
        alone = max((key.share for key in shares.heaviest(1)), default=0.0)
        then = next((each for each in tried if to or each.largest <= limit), None)
        if then is None:
            then = _scenario(shares, counts[0] if alone > limit else counts[-1], readers)
        verdict = _verdict(shares, now, then, alone, limit, readers, asked=to is not None)
    sample = shares.sample
    return KeyReport(
        topic=sample.window.topic,
        partition=partition,
        group=readers and readers.group,
        verdict=verdict,
        keys=keys,
        without_key=shares.without_key,
        different=len(shares.keys),
        partitioner=partitioner,
        placed=placed,
        now=now,
        then=then,
        records=round(float(shares.records.sum())),
        seconds=sample.window.seconds,
        sampled=int(shares.read.sum()),
        bytes=sample.bytes,
        took_s=sample.seconds,
        reader=sample.reader,
        stopped=sample.stopped,
    )


def _limit(shares: KeyShares, now: Scenario, readers: Readers | None) -> float:
    """Return the share of the records that a partition may get at most, for more to help."""
    if readers is None:
        return _RELIEF * now.largest
    per_s = shares.records.sum() * _usual(shares, readers) / shares.sample.window.seconds
    return readers.room / max(float(per_s), 1e-9)


def _usual(shares: KeyShares, readers: Readers) -> float:
    """Return how many usual records one of the topic takes, on average."""
    return float((shares.records * readers.costs).sum() / max(float(shares.records.sum()), 1e-9))


def _verdict(  # noqa: PLR0913 - what the sentence is about
    shares: KeyShares,
    now: Scenario,
    then: Scenario,
    alone: float,
    limit: float,
    readers: Readers | None,
    *,
    asked: bool,
) -> str:
    """Say in one sentence what helps."""
    gives = (
        f"{plural(then.partitions, 'partition')} instead of {now.partitions:,}: the largest gets "
        f"{percent(then.largest)} of the records instead of {percent(now.largest)}"
    )
    if shares.without_key > 1 - 1 / (2 * now.partitions):
        return "The records have no keys: their producers choose the partitions, not a hash."
    if alone > limit:
        # Without a group nobody knows what is too much: a key that is most of its partition is.
        known = readers is not None or alone > _MOST * now.largest
        helps = "more partitions cannot help" if known else "more partitions help little"
        return f"One key alone is {percent(alone)} of the records: {helps}. {gives}."
    if not asked and now.largest * now.partitions <= _EVEN:
        return f"The partitions are even: no key makes one of them hot. {gives}."
    enough = then.largest <= limit
    return f"{gives}{'' if enough else ', which is not enough'}."


def _scenario(
    shares: KeyShares, count: int, readers: Readers | None, *, present: bool = False
) -> Scenario:
    """Return what a number of partitions gives; the present number is as it was measured."""
    records = shares.records if present else shares.load_of(count)
    parts = tuple((records / max(float(records.sum()), 1e-9)).tolist())
    if readers is None:
        return Scenario(count, parts)
    work = shares.records * readers.costs if present else shares.load_of(count, readers.costs)
    loads = work / shares.sample.window.seconds
    every = np.concatenate([loads, readers.others])
    usual = float(np.median(readers.capacities))
    number = missing_members(every, np.zeros(0), readers.target * usual)
    return Scenario(
        count,
        parts,
        today=consumers_under(loads, readers, readers.capacities),
        wanted=consumers_under(loads, readers, np.full(max(number, 1), usual)),
    )


def consumers_under(loads: Float64, readers: Readers, capacities: Float64) -> Consumers:
    """Return what consumers make of partitions with these loads, dealt as evenly as they can be.

    Records that wait stay in the partitions that have them today.

    Parameters
    ----------
    loads
        Usual records a second that each of the topic's N partitions gets, shape (N,).
    capacities
        Of the consumers, in usual records a second, shape (M,).
    """
    more = len(loads) + len(readers.others)

    def padded(values: Float64) -> Float64:
        return np.append(values[:more], np.zeros(max(more - len(values), 0)))

    arrivals = np.append(loads, readers.others)
    outlook = Outlook(
        arrivals=arrivals,
        deviation=np.zeros(more),
        backlog=padded(readers.backlog * readers.costs),
        late_s=padded(readers.behind_s),
        capacities=capacities,
        objective_s=readers.objective_s,
    )
    found = outlook.forecast(_dealt(arrivals, capacities), readers.horizon_s)
    return Consumers(len(capacities), found.utilisation, found.late_s)


def _dealt(loads: Float64, capacities: Float64) -> np.typing.NDArray[np.int32]:
    """Give each partition, largest first, to the consumer that it leaves the most room."""
    owner, taken = np.zeros(len(loads), np.int32), np.zeros(len(capacities))
    for partition in np.argsort(-loads, kind="stable").tolist():
        owner[partition] = ((taken + loads[partition]) / capacities).argmin()
        taken[owner[partition]] += loads[partition]
    return owner


def identity(key: bytes) -> str:
    """Return the first 12 digits of a key's SHA-256, which stand for it."""
    return sha256(key).hexdigest()[:12]


def written(key: bytes) -> str:
    r"""Return a key as text; bytes that are no UTF-8 text in hexadecimal.

    Examples
    --------
    >>> written(b"orders"), written(b"\xff\x00"), identity(b"orders")
    ('orders', '0xff00', '1c168adb00d2')
    """
    try:
        return key.decode()
    except UnicodeDecodeError:
        return f"0x{key.hex()}"
