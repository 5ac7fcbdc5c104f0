"""When retention deletes records that a group has not read.

Belongs here: the speed of the first offsets of logs, and the time until they overtake the group.
Belongs elsewhere: reading speeds (`capacities`).

Kafka deletes whole segments, so the first offset of a log stays the same for a while and then
jumps. Since its last jump, the first offset is assumed to have moved along the line through the
jumps, by at most one jump.
"""

from dataclasses import dataclass

import numpy as np

from fairlead.domain.analysis.sample_series import Float64, Mask, SampleSeries, quotient


@dataclass(frozen=True, eq=False)
class Retention:
    """Distance from the first offsets of P logs to the group's position, shapes (P,)."""

    #: Records until retention reaches the group's position; 0: reached.
    room: Float64
    #: Speed of first offsets, records a second; 0: no movement.
    per_s: Float64

    def seconds(self, waits: Mask, read: Float64, catch_up_s: Float64) -> Float64:
        """Return the seconds until records are lost, float64 of shape (P,); infinite: never.

        `waits`: whether a partition has a backlog; `read`: records read a second; `catch_up_s`:
        seconds until the backlog has been read, infinite: never.

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
    """Compute how far retention is from the group's position; None: no first offset has moved.

    If a first offset jumped only once, its speed is assumed to be `arrivals`, records a second.
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
