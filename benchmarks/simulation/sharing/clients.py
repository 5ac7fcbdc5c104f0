"""Clients by name: how they share their time, and when they commit."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from benchmarks.simulation.sharing.arrival_order import ArrivalOrder
from benchmarks.simulation.sharing.batches import Batches
from benchmarks.simulation.sharing.chunks import Chunks
from benchmarks.simulation.sharing.proportional import Proportional
from benchmarks.simulation.sharing.way import Sharing
from fairlead.simulation.world import Int64

#: `max.poll.records` of kafka-python and Java: commits wait until these records are processed.
_POLL = 500.0


@dataclass(frozen=True)
class Client:
    """A client: how it shares time, and when it can commit.

    Parameters
    ----------
    sharing
        Creates a `Sharing`. Its arguments are the ranks of partitions in the first fetches, and the
        size of a record.
    poll_records
        Number of records between two possible commits. 0: a thread commits at any time.
    """

    sharing: Callable[[Int64, float], Sharing]
    poll_records: float = 0.0


#: Clients by name.
CLIENTS: Mapping[str, Client] = MappingProxyType(
    {
        "proportional": Client(lambda *_: Proportional()),
        "kafka-python": Client(Chunks, _POLL),
        "java": Client(Chunks, _POLL),
        "aiokafka": Client(Chunks),
        "confluent-kafka": Client(ArrivalOrder),
        "aiokafka getmany": Client(Batches),
    }
)
