"""What a group's members tell, and in which order Kafka takes them.

Belongs here: what a problem is made of. Does not: the problem (`problem`), nor checking what a
caller hands in (`problem_input`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]

LARGEST_LAG = np.iinfo(np.int64).max


class InvalidProblemError(ValueError):
    """A problem, or an assignor's option, that contradicts itself; the message says where."""


@dataclass(frozen=True)
class Member:
    """What is known of one group member.

    Parameters
    ----------
    topics
        The subscription. Topics that do not exist are ignored.
    owned
        Topic to the partitions the member claims to own now.
    generation
        Of the claims, as in KIP-54's successors: the higher one wins a conflict. None: before any.
        What loses is remembered: where newer claims decide nothing, it counts.
    instance_id
        `group.instance.id` of a static member.
    rack
        `client.rack`.
    capacity
        Relative processing speed: a member of capacity 2 is as loaded by 2 records as one of
        capacity 1 by 1.
    """

    topics: Iterable[str]
    owned: Mapping[str, Iterable[int]] = field(default_factory=dict)
    generation: int | None = None
    instance_id: str | None = None
    rack: str | None = None
    capacity: float = 1.0


def kafka_order(name: str) -> bytes:
    """Sort key of Java's `String.compareTo`: by UTF-16 code unit, not by code point."""
    return name.encode("utf-16-be", "surrogatepass")
