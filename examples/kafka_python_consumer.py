"""A consumer that follows its group's plans, with kafka-python.

    python kafka_python_consumer.py localhost:9092 orders orders-1 orders payments

Only `PlanConsumer` differs from any other kafka-python consumer. Give each consumer of the group a
`client_id` of its own: plans know it by that name.
"""

import logging
import sys

from fairlead.followers.kafka_python import PlanConsumer


def main(bootstrap_servers: str, group: str, name: str, *topics: str) -> None:
    """Print every record until interrupted."""
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
