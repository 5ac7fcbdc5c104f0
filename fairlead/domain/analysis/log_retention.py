"""When retention takes away what a group has not read yet.

Belongs here: how fast the logs' begins move, and when one overtakes the group. Does not: how fast
members read (`capacities`), nor what a group that loses records should do.

Kafka deletes whole segments, so that a log's begin stands for a while and then jumps. Between jumps
the line through them, at most a jump ahead of where the begin stands, says where it may soon be.
"""

from dataclasses import dataclass

import numpy as np

from fairlead.domain.analysis.looks import Float64, Looks, Mask


@dataclass(frozen=True, eq=False)
class Retention:
    """How far the begins of P logs are from where the group stands.

    Parameters
    ----------
    room
        Records that retention may still take before it reaches the group, float64 of shape (P,); 0
        where it has.
    per_s
        How fast begins move, records a second, float64 of shape (P,); 0 where none was seen to.
    """

    room: Float64
    per_s: Float64

    def seconds(self, waits: Mask, read: Float64, caught_up_s: Float64) -> Float64:
        """Return in how many seconds records are lost, float64 of shape (P,); infinite: never.

        Parameters
        ----------
        waits
            Whether anything waits to be read, bool of shape (P,).
        read
            Records a second that are read meanwhile, float64 of shape (P,).
        caught_up_s
            When nothing waits any more, float64 of shape (P,); infinite: never.

        Examples
        --------
        >>> retention = Retention(np.array([600.0, 0.0]), np.array([2.0, 0.0]))
        >>> reads, never = np.array([1.0, 1.0]), np.full(2, np.inf)
        >>> retention.seconds(np.ones(2, bool), reads, never).tolist()
        [600.0, inf]
        """
        closing = self.per_s - read
        nears = waits & (self.per_s > 0) & (closing > 0)
        seconds = np.where(nears, self.room / np.where(nears, closing, 1.0), np.inf)
        return np.where(seconds < caught_up_s, seconds, np.inf)


def retention_of(looks: Looks, arrivals: Float64) -> Retention | None:
    """Say how far retention is from the group; None where no log was seen to lose its begin.

    Parameters
    ----------
    looks
        As far back as there are.
    arrivals
        Records a second of each partition, float64 of shape (P,): how fast a begin moves that was
        seen to jump once.

    Notes
    -----
    O(L P).
    """
    known = looks.in_one_log & (looks.begin >= 0)
    jumps = np.where(known[1:] & known[:-1], np.diff(looks.begin, axis=0), 0)
    jumped = jumps > 0
    if not jumped.any():
        return None
    columns = np.arange(looks.partitions)
    first = jumped.argmax(axis=0)
    last = jumped.shape[0] - 1 - jumped[::-1].argmax(axis=0)
    span = looks.at[last + 1] - looks.at[first + 1]
    taken = looks.begin[last + 1, columns] - looks.begin[first + 1, columns]
    several = span > 0
    per_s = np.where(several, taken / np.where(several, span, 1.0), arrivals)
    per_s = np.where(jumped.any(axis=0), per_s, 0.0)
    since = looks.now - looks.at[last + 1]
    ahead = np.minimum(per_s * since, jumps.max(axis=0))
    room = looks.position[-1] - looks.begin[-1] - ahead
    return Retention(np.maximum(room, 0.0), per_s)
