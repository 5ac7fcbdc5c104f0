"""A report on the keys of a hot partition, and on the effect of more partitions.

Belongs here: choosing a number of partitions, forecasting consumers, and the verdict. Belongs
elsewhere: estimating shares and loads (`key_shares`), and formatting the report
(`fairlead.surfaces.cli.keys`).
"""

from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import numpy as np

from fairlead.common.words import length, percent, plural
from fairlead.domain.analysis.forecast import Outlook
from fairlead.domain.analysis.sizing import missing_members
from fairlead.domain.key_shares import KeyShares
from fairlead.domain.record_sample import Float64

Row = dict[str, Any]

#: Maximum number of keys in a report.
SHOWN: Final = 10
#: The effect of more partitions is tried for these multiples of the present number.
_MULTIPLES: Final = (2, 3, 4, 6, 8, 12, 16)
#: More partitions help if the largest partition's share of the records falls to at most this part
#: of its present value. Used only if no consumers are known.
_RELIEF: Final = 2 / 3
_PARTITIONERS: Final = {
    "murmur2": "Producers place keys by murmur2, Java's default: {} of the sampled keys.",
    "crc32": "Producers place keys by CRC32, librdkafka's default: {} of the sampled keys.",
    "assumed": "The sampled keys do not show the producers' partitioner: murmur2 is assumed.",
    "unknown": "Neither murmur2 nor CRC32 explains the partitions of keys: at best {} of the "
    "sampled keys.",
}


@dataclass(frozen=True, eq=False)
class Readers:
    """The consumers of a topic with P partitions, from the last sample of their group.

    Parameters
    ----------
    capacities
        Capacity of each of M consumers, in cost-weighted records a second, shape (M,).
    costs
        Cost of each partition's records, as a multiple of the usual cost, shape (P,).
    seconds
        Reported seconds per record of each partition, shape (P,); None if at least one is unknown.
    arrivals, backlog, behind_s
        Arrivals in cost-weighted records a second, backlog in cost-weighted records, and time lag
        in seconds. Each is of shape (Q,): first the topic's partitions, then the group's other
        partitions.
    target, horizon_s
        Target utilisation; horizon of the forecast.
    """

    capacities: Float64
    costs: Float64
    seconds: Float64 | None
    arrivals: Float64
    backlog: Float64
    behind_s: Float64
    target: float
    horizon_s: float


def key_report(
    shares: KeyShares,
    *,
    partition: int | None = None,
    to: int | None = None,
    readers: Readers | None = None,
    show_keys: bool = False,
) -> Row:
    """Return a report about the keys in a sample.

    Parameters
    ----------
    partition
        Partition whose keys are listed; None: list the keys of the topic.
    to
        Number of partitions to compare with; None: the smallest number that helps.
    readers
        The consumers; None: unknown, and nothing is forecast.
    show_keys
        Whether to show keys instead of the start of their SHA-256.

    Returns
    -------
    The report has `topic`; `verdict`, a sentence; `partitioner`; and

    - `keys`: rows of `KeyShares.heaviest`, each with the key's name
    - `without_key`: share of records without a key
    - `scenarios`: the topic as it is and, if the effect is known, with more partitions
    - `records`: number of records in the sampled part of the log
    - `sampled`, `bytes`: number of records that were read, and their bytes
    - `notes`: sentences about the partitioner and the sample

    A scenario has

    - `partitions`: number of partitions
    - `shares`, `largest`: share of the records in each partition, and the largest share
    - `today`, `wanted`: result of `consumers_under` for the present number of consumers, and for
      the number needed
    """
    now = _scenario(shares, shares.partitions, readers)
    then, verdict = _compare(shares, now, to, readers)
    return {
        "topic": shares.sample.window.topic,
        "verdict": verdict,
        "keys": [
            row | {"key": _name(row["key"], show_keys=show_keys)}
            for row in shares.heaviest(SHOWN, partition)
        ],
        "without_key": shares.without_key,
        "partitioner": shares.placement[0],
        "scenarios": [now, then] if then else [now],
        "records": round(float(shares.records.sum())),
        "sampled": int(shares.read.sum()),
        "bytes": shares.sample.bytes,
        "notes": _notes(shares),
    }


def _name(key: bytes, *, show_keys: bool) -> str:
    """Return the start of a key's SHA-256, or the key with escapes for bytes that are not UTF-8.

    Examples
    --------
    >>> _name(b"orders", show_keys=True), _name(b"", show_keys=True)
    ('orders', '(empty key)')
    >>> _name(b"orders", show_keys=False)
    '1c168adb00d2'
    """
    text = key.decode(errors="backslashreplace") or "(empty key)"
    return text if show_keys else sha256(key).hexdigest()[:12]


def _notes(shares: KeyShares) -> list[str]:
    """Return sentences about the producers' partitioner and the sample."""
    sample, (partitioner, placed) = shares.sample, shares.placement
    read = (
        f"Sampled {shares.read.sum():,.0f} of {shares.records.sum():,.0f} records of the last "
        f"{length(sample.window.seconds)}, with {plural(len(shares.keys), 'key')}: "
        f"{sample.bytes / 1e6:,.0f} MB in {sample.seconds:.0f} s."
    )
    if sample.stopped:
        read += " Sampling ended early, at its limit of bytes or seconds."
    return [_PARTITIONERS[partitioner].format(percent(placed)), read]


def _compare(
    shares: KeyShares, now: Row, to: int | None, readers: Readers | None
) -> tuple[Row | None, str]:
    """Return the effect of more partitions (None if it is unknown), and the verdict."""
    if shares.placement[0] == "unknown":
        return (
            None,
            "The effect of more partitions is unknown: the producers' partitioner is unknown.",
        )
    limit = _RELIEF * now["largest"]
    if readers is not None:  # the share of all records that one consumer can process
        work = shares.records * shares.offsets_per_record * readers.costs
        total = float(work.sum()) / shares.sample.window.seconds
        limit = readers.target * float(readers.capacities.max()) / total
    single = max((key["share"] for key in shares.heaviest(1)), default=0.0)
    for count in [to] if to else [shares.partitions * each for each in _MULTIPLES]:
        then = _scenario(shares, count, readers)
        if then["largest"] <= limit or single > limit:
            break
    effect = (
        f"{plural(then['partitions'], 'partition')} instead of {shares.partitions:,}: the largest "
        f"gets {percent(then['largest'])} of the records instead of {percent(now['largest'])}"
    )
    if not shares.keys:
        return then, "The records have no keys: their producers choose the partitions, not a hash."
    if single > limit:
        alone = f"One key has {percent(single)} of the records"
        return then, f"{alone}: more partitions cannot help. {effect}."
    if now["largest"] <= limit:
        return then, f"No partition is hot. {effect}."
    return then, effect + ("." if then["largest"] <= limit else ", which is not enough.")


def _scenario(shares: KeyShares, count: int, readers: Readers | None) -> Row:
    """Return the loads with `count` partitions: measured for the present number, else estimated."""

    def load(worth: Float64) -> Float64:
        present = count == shares.partitions
        return shares.records * worth if present else shares.load_of(count, worth)

    parts = load(np.ones(shares.partitions)) / shares.records.sum()
    row: Row = {"partitions": count, "shares": parts.tolist(), "largest": float(parts.max())}
    if readers is None:
        return row | {"today": None, "wanted": None}
    loads = load(readers.costs * shares.offsets_per_record) / shares.sample.window.seconds
    usual = float(np.median(readers.capacities))
    every = np.append(loads, readers.arrivals[shares.partitions :])
    number = max(missing_members(every, np.zeros(0), readers.target * usual), 1)
    return row | {
        "today": consumers_under(loads, readers, readers.capacities),
        "wanted": consumers_under(loads, readers, np.full(number, usual)),
    }


def consumers_under(loads: Float64, readers: Readers, capacities: Float64) -> Row:
    """Forecast a group whose consumers divide its partitions as evenly as possible.

    The topic gets N partitions, but its unread records stay in their present partitions.

    Parameters
    ----------
    loads
        Arrivals in each of the topic's N partitions, in cost-weighted records a second, shape (N,).
    capacities
        Capacities of the consumers, in cost-weighted records a second, shape (M,).

    Returns
    -------
    `count`: number of consumers; `utilisation` of the most utilised; `time_lag_s` at the horizon.
    """
    present = readers.costs.size
    arrivals = np.append(loads, readers.arrivals[present:])
    backlog, behind_s = (
        np.insert(values, present, np.zeros(loads.size - present))
        for values in (readers.backlog, readers.behind_s)
    )
    owner, load = np.zeros(arrivals.size, np.int32), np.zeros(capacities.size)
    for place in np.argsort(-arrivals, kind="stable").tolist():
        owner[place] = ((load + arrivals[place]) / capacities).argmin()
        load[owner[place]] += arrivals[place]
    outlook = Outlook(arrivals, np.zeros(arrivals.size), backlog, behind_s, capacities)
    forecast = outlook.forecast(owner, readers.horizon_s)
    return {
        "count": capacities.size,
        "utilisation": forecast.utilisation,
        "time_lag_s": forecast.time_lag_s,
    }
