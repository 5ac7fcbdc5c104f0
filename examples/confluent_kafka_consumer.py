"""A confluent-kafka consumer that follows its group's plans.

    python confluent_kafka_consumer.py localhost:9092 orders orders-1 orders payments

The arguments are the broker, the group, the `client.id`, and the topics. Only `PlanConsumer`
differs from any other confluent-kafka consumer. Give each consumer of the group a `client.id` of
its own, since plans name members by client id.
"""

import logging
import sys

from confluent_kafka import KafkaException

from fairlead.followers.confluent import PlanConsumer


def main(bootstrap_servers: str, group: str, name: str, *topics: str) -> None:
    """Print every message until the process is interrupted."""
    logging.basicConfig(level=logging.WARNING)
    logging.getLogger("fairlead").setLevel(logging.INFO)
    config = {
        "bootstrap.servers": bootstrap_servers,
        "group.id": group,
        "client.id": name,
        "auto.offset.reset": "earliest",
    }
    with PlanConsumer(config) as consumer:
        consumer.subscribe(list(topics))
        try:
            while True:
                message = consumer.poll(1.0)
                if message is None:
                    continue
                if (error := message.error()) is not None:
                    raise KafkaException(error)
                where = f"{message.topic()}-{message.partition()} at {message.offset()}"
                print(where, message.value(), flush=True)
        except KeyboardInterrupt:
            print(consumer.status())


if __name__ == "__main__":
    main(*sys.argv[1:])
