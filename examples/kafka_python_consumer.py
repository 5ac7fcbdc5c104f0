"""A kafka-python consumer that follows its group's plans.

    python kafka_python_consumer.py localhost:9092 orders orders-1 orders payments

The arguments are the broker, the group, the `client_id`, and the topics. Only `PlanConsumer`
differs from any other kafka-python consumer. Give each consumer of the group a `client_id` of its
own, since plans name members by client id.
"""

import logging
import sys

from fairlead.followers.kafka_python import PlanConsumer


def main(bootstrap_servers: str, group: str, name: str, *topics: str) -> None:
    """Print every record until the process is interrupted."""
    logging.basicConfig(level=logging.WARNING)
    logging.getLogger("fairlead").setLevel(logging.INFO)
    consumer = PlanConsumer(
        *topics,
        bootstrap_servers=bootstrap_servers,
        group_id=group,
        client_id=name,
        auto_offset_reset="earliest",
    )
    try:
        for record in consumer:
            where = f"{record.topic}-{record.partition} at {record.offset}"
            print(where, record.value, flush=True)
    except KeyboardInterrupt:
        print(consumer.plan_assignor.status())
    finally:
        consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
