"""An aiokafka consumer that follows its group's plans.

    python aiokafka_consumer.py localhost:9092 orders orders-1 orders payments

The arguments are the broker, the group, the `client_id`, and the topics. Only `PlanConsumer`
differs from any other aiokafka consumer. Give each consumer of the group a different `client_id`,
since plans name members by client id. The rebalance listener sets up state for partitions that are
new to this consumer, and cleans up the state of partitions that are permanently lost.
"""

import asyncio
import logging
import sys

from aiokafka import TopicPartition

from fairlead.followers.aiokafka import PlanConsumer
from fairlead.followers.cleanup.aiokafka import CleanupListener


async def read(bootstrap_servers: str, group: str, name: str, *topics: str) -> None:
    """Print every record until the task is cancelled."""
    counts: dict[TopicPartition, int] = {}

    def set_up(partitions: set[TopicPartition]) -> None:
        counts.update(dict.fromkeys(partitions, 0))

    def clean_up(partitions: set[TopicPartition]) -> None:
        for partition in partitions:
            del counts[partition]

    consumer = PlanConsumer(
        bootstrap_servers=bootstrap_servers,
        group_id=group,
        client_id=name,
        auto_offset_reset="earliest",
    )
    consumer.subscribe(topics, listener=CleanupListener(consumer, set_up, clean_up))
    await consumer.start()
    try:
        async for record in consumer:
            counts[TopicPartition(record.topic, record.partition)] += 1
            where = f"{record.topic}-{record.partition} at {record.offset}"
            print(where, record.value, flush=True)
    finally:
        print(consumer.plan_assignor.status(), flush=True)
        await consumer.stop()


def main(bootstrap_servers: str, group: str, name: str, *topics: str) -> None:
    """Read until the process is interrupted."""
    logging.basicConfig(level=logging.WARNING)
    logging.getLogger("fairlead").setLevel(logging.INFO)
    try:
        asyncio.run(read(bootstrap_servers, group, name, *topics))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main(*sys.argv[1:])
