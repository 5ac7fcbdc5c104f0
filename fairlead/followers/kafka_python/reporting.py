"""Add reports of work to all commits of kafka-python.

Belongs here: the method that sends every commit. Does not: measuring (`followers.core.meter`).

kafka-python 3.0 has no public way to add metadata to automatic commits. All commits, automatic or
not, go through `_send_offset_commit_request` of the coordinator. The callbacks
of the application receive offsets without reports.
"""

import weakref
from typing import Any

from kafka import KafkaConsumer

from fairlead.followers.core.meter import Meter, reported


def report_work(consumer: KafkaConsumer, meter: Meter) -> None:
    """Add a report to each committed offset without metadata."""
    coordinator = consumer._coordinator  # noqa: SLF001 - there is no other way
    send = coordinator._send_offset_commit_request  # noqa: SLF001 - as above
    known = weakref.ref(consumer)

    async def send_with_reports(offsets: Any) -> Any:
        if (reader := known()) is not None:
            member_id = coordinator._generation.member_id  # noqa: SLF001 - as above
            offsets = reported(offsets, meter, member_id, paused=len(reader.paused()))
        return await send(offsets)

    coordinator._send_offset_commit_request = send_with_reports  # noqa: SLF001 - as above
