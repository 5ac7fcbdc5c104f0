"""Report the application's processing times in the metadata of all commits of aiokafka.

Belongs here: wrapping the client's private methods. Belongs elsewhere: measuring processing times
(`followers.core.meter`).

aiokafka 0.14 has no public way to add metadata to automatic commits. So this module wraps the
coordinator's `_do_commit_offsets`, which sends all commits, automatic or not. To measure how long
the consumer waits, it also wraps the methods that create the futures for which `getone` and
`getmany` wait. While there are records, no future is created, so the measurement costs nothing.
"""

import weakref
from collections.abc import Callable
from typing import Any

from aiokafka import AIOKafkaConsumer

from fairlead.followers.core.meter import Meter, reported


def report_work(consumer: AIOKafkaConsumer, meter: Meter) -> None:
    """Add a report to each committed offset that has no metadata, and measure waits for records.

    Call once the consumer has started.
    """
    coordinator = consumer._coordinator  # noqa: SLF001 - there is no other way
    fetcher, subscription = consumer._fetcher, consumer._subscription  # noqa: SLF001 - as above
    commit = coordinator._do_commit_offsets  # noqa: SLF001 - as above
    known = weakref.ref(consumer)

    async def commit_with_reports(assignment: Any, offsets: Any) -> None:
        if (reader := known()) is not None:
            offsets = reported(offsets, meter, coordinator.member_id, paused=len(reader.paused()))
        await commit(assignment, offsets)

    def noting_wait(create_future: Callable[[], Any]) -> Callable[[], Any]:
        def create() -> Any:
            meter.waits()
            return create_future()

        return create

    coordinator._do_commit_offsets = commit_with_reports  # noqa: SLF001 - as above
    fetcher._create_fetch_waiter = noting_wait(fetcher._create_fetch_waiter)  # noqa: SLF001 - as above
    subscription.wait_for_assignment = noting_wait(subscription.wait_for_assignment)
