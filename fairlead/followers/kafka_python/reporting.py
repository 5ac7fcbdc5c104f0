"""Report the application's processing times in the metadata of all commits of kafka-python.

Belongs here: wrapping the client's method that sends commits. Belongs elsewhere: measuring
(`followers.core.meter`).

kafka-python 3.0 has no public way to add metadata to automatic commits. So this module wraps the
coordinator's `_send_offset_commit_request`, which sends all commits, automatic or not. The
application's callbacks still receive offsets without reports.
"""

import weakref
from typing import Any

from kafka import KafkaConsumer

from fairlead.followers.core.meter import Meter, reported


def report_work(consumer: KafkaConsumer, meter: Meter) -> None:
    """Add a report to each committed offset that has no metadata."""
    coordinator = consumer._coordinator  # noqa: SLF001 - there is no other way
    send = coordinator._send_offset_commit_request  # noqa: SLF001 - as above
    known = weakref.ref(consumer)

    async def send_with_reports(offsets: Any) -> Any:
        if (reader := known()) is not None:
            member_id = coordinator._generation.member_id  # noqa: SLF001 - as above
            offsets = reported(offsets, meter, member_id, paused=len(reader.paused()))
        return await send(offsets)

    coordinator._send_offset_commit_request = send_with_reports  # noqa: SLF001 - as above
