"""Members of a group, and Kafka's order of names.

Belongs here: parts of a problem. Does not: the problem (`problem`), nor checking its input
(`problem_input`).
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
    """An invalid problem or option of an assignor; the message names the place."""


@dataclass(frozen=True)
class Member:
    """A member of a group.

    Parameters
    ----------
    topics
        The subscription. Topics that do not exist are ignored.
    owned
        Topic to the partitions the member claims to own now.
    generation
        Generation of the claims: the higher one wins a conflict. None: before any generation. Older
        claims break ties.
    instance_id
        `group.instance.id` of a static member.
    rack
        `client.rack`.
    capacity
        Relative processing speed: 2 records load a member of capacity 2 as much as 1 record a
        member of capacity 1.
    """

    topics: Iterable[str]
    owned: Mapping[str, Iterable[int]] = field(default_factory=dict)
    generation: int | None = None
    instance_id: str | None = None
    rack: str | None = None
    capacity: float = 1.0


def kafka_order(name: str) -> bytes:
    """Return the sort key of Java's `String.compareTo`: UTF-16 code units, not code points."""
    return name.encode("utf-16-be", "surrogatepass")
