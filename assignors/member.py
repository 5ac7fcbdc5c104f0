"""Members of a group, and Kafka's order of names.

Belongs here: the parts of a problem. Belongs elsewhere: the problem (`problem`), checking a
caller's input (`problem_input`).
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
    """A problem or an option of an assignor is invalid; the message names the wrong value."""


@dataclass(frozen=True)
class Member:
    """A member of a group.

    Parameters
    ----------
    topics
        The subscription. Topics that do not exist are ignored.
    owned
        Map from topic to the partitions that the member claims to own now.
    generation
        Generation of these claims. If several members claim a partition, the highest generation
        wins; None counts as the lowest. The claims that do not win show earlier owners.
    instance_id
        `group.instance.id` of a static member.
    rack
        `client.rack`.
    capacity
        Relative processing speed. For a member of capacity 2, 2 records are as much load as 1
        record is for a member of capacity 1.
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
