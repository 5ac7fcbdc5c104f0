"""When retention deletes records that a group has not read.

Belongs here: how fast the start offsets of logs grow, and when they pass the group's position.
Belongs elsewhere: reading speeds (`capacities`).

Kafka deletes whole segments, so the start offset of a log stays the same for a while and then
jumps. Between jumps, the start offset is assumed to grow steadily, at the mean speed of the earlier
jumps, but by no more than the largest jump.
"""

from dataclasses import dataclass

import numpy as np

from fairlead.domain.analysis.sample_series import Float64, Mask, SampleSeries, quotient


@dataclass(frozen=True, eq=False)
class Retention:
    """Distances from the starts of P logs to the group's positions; arrays are of shape (P,)."""

    #: Number of records between the estimated start of the log and the group's position; at least
    #: 0.
    room: Float64
    #: How fast the start offset grows, records a second; 0: it does not grow.
    per_s: Float64

    def seconds(self, waits: Mask, read: Float64, catch_up_s: Float64) -> Float64:
        """Return the seconds until records are lost, float64 of shape (P,); infinite: never.

        `waits`: whether each partition has a backlog; `read`: records read a second; `catch_up_s`:
        seconds until the backlog has been read; infinite: never.

        Examples
        --------
        >>> retention = Retention(np.array([600.0, 0.0]), np.array([2.0, 0.0]))
        >>> reads, never = np.array([1.0, 1.0]), np.full(2, np.inf)
        >>> retention.seconds(np.ones(2, bool), reads, never).tolist()
        [600.0, inf]
        """
        closing = self.per_s - read
        seconds = quotient(self.room, closing, np.inf)
        nears = waits & (self.per_s > 0) & (seconds < catch_up_s)
        return np.where(nears, seconds, np.inf)


def retention_of(series: SampleSeries, arrivals: Float64) -> Retention | None:
    """Return distances from log starts to the group's positions; None: no log start has changed.

    If a start offset jumped only once, it is assumed to grow by `arrivals`, records a second.
    """
    known = series.in_one_log & (series.begin >= 0)
    jumps = np.where(known[1:] & known[:-1], np.diff(series.begin, axis=0), 0)
    jumped = jumps > 0
    if not jumped.any():
        return None
    columns = np.arange(series.partitions)
    first = jumped.argmax(axis=0)
    last = jumped.shape[0] - 1 - jumped[::-1].argmax(axis=0)
    span = series.at[last + 1] - series.at[first + 1]
    taken = series.begin[last + 1, columns] - series.begin[first + 1, columns]
    per_s = np.where(jumped.any(axis=0), quotient(taken, span, arrivals), 0.0)
    since = series.now - series.at[last + 1]
    ahead = np.minimum(per_s * since, jumps.max(axis=0))
    room = series.position[-1] - series.begin[-1] - ahead
    return Retention(np.maximum(room, 0.0), per_s)
