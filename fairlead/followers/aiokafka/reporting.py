"""Add reports of work to all commits of aiokafka.

Belongs here: the method that sends every commit. Does not: measuring (`followers.core.meter`).

aiokafka 0.14 has no public way to add metadata to automatic commits. All commits, automatic or not,
go through `_do_commit_offsets` of the coordinator.
"""

import weakref
from typing import Any

from aiokafka import AIOKafkaConsumer

from fairlead.followers.core.meter import Meter, reported


def report_work(consumer: AIOKafkaConsumer, meter: Meter) -> None:
    """Add a report to each committed offset without metadata.

    Call once the consumer has a coordinator.
    """
    coordinator = consumer._coordinator  # noqa: SLF001 - there is no other way
    commit = coordinator._do_commit_offsets  # noqa: SLF001 - as above
    known = weakref.ref(consumer)

    async def commit_with_reports(assignment: Any, offsets: Any) -> None:
        if (reader := known()) is not None:
            offsets = reported(offsets, meter, coordinator.member_id, paused=len(reader.paused()))
        await commit(assignment, offsets)

    coordinator._do_commit_offsets = commit_with_reports  # noqa: SLF001 - as above
