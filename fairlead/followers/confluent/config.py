"""A PlanConsumer's configuration.

Belongs here: checking settings, and selecting the settings that a plan follower's own clients need.
Belongs elsewhere: opening connections.
"""

from collections.abc import Mapping
from typing import Any, Final

from fairlead.errors import ConfigurationError

_CONNECTION_PREFIXES: Final = (
    "bootstrap.",
    "broker.address.",
    "client.dns.",
    "enable.sasl.",
    "enable.ssl.",
    "https.",
    "metadata.broker.",
    "sasl.",
    "security.",
    "socket.",
    "ssl.",
)
#: Milliseconds. Longest time for which a broker may hold a fetch request without records. It is
#: long, because each empty response costs broker and client time.
_PATIENCE_MS: Final = 4_000
#: Milliseconds. Shortest time for which a broker may hold a fetch request, librdkafka's default.
#: Without this limit, a client with a short time-out would fetch in a loop.
_LEAST_MS: Final = 500
#: Milliseconds. librdkafka requires that the time-out of a request is at least this much longer
#: than the time for which a broker may hold a fetch request.
_SPARE_MS: Final = 1_000
_CONNECTION: Final = frozenset(
    {"api.version.request", "debug", "log_level", "logger", "oauth_cb", "plugin.library.paths"}
)


def check(config: Mapping[str, Any]) -> dict[str, Any]:
    """Check a consumer's configuration, and return it with the settings that plans require.

    Parameters
    ----------
    config
        Settings of librdkafka and of confluent-kafka itself.

    Raises
    ------
    ConfigurationError
        `group.id` is missing, or a setting is incompatible with plans.

    Examples
    --------
    >>> check({"group.id": "orders"})["partition.assignment.strategy"]
    'range'
    """
    # confluent-kafka also accepts `group_id` for `group.id`.
    settings = {_dotted(name): value for name, value in config.items()}
    if not settings.get("group.id"):
        raise ConfigurationError("PlanConsumer: group.id is missing; plans are for groups")
    if settings.get("group.instance.id"):
        raise ConfigurationError(
            "PlanConsumer: group.instance.id is not supported: members agree on a plan in a "
            "rebalance, and the restart of a static member causes none. Set only client.id"
        )
    strategy = settings.setdefault("partition.assignment.strategy", "range")
    if strategy != "range":
        raise ConfigurationError(
            f"PlanConsumer: leave out partition.assignment.strategy (it is {strategy}); members "
            "need the range assignor, whose assignment they redistribute by the plan"
        )
    protocol = settings.setdefault("group.protocol", "classic")
    if str(protocol).lower() != "classic":
        raise ConfigurationError(
            f"PlanConsumer: group.protocol is {protocol}: the broker then assigns. Use classic"
        )
    return settings


def connection_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the connection settings for a plan follower's own clients, which create no topics.

    By default, if a producer or admin client of librdkafka requests metadata about a topic that
    does not exist, brokers may create the topic.

    Examples
    --------
    >>> connection_of({"bootstrap.servers": "k:9093", "group.id": "g", "ssl.ca.location": "ca"})
    {'bootstrap.servers': 'k:9093', 'ssl.ca.location': 'ca', 'allow.auto.create.topics': False}
    """
    reach = {
        name: value
        for name, value in settings.items()
        if name in _CONNECTION or name.startswith(_CONNECTION_PREFIXES)
    }
    return {**reach, "allow.auto.create.topics": False}


def patience_of(connection: Mapping[str, Any]) -> int:
    """Return a value for `fetch.wait.max.ms`: how long a broker may wait for records.

    Examples
    --------
    >>> [patience_of({"socket.timeout.ms": timeout}) for timeout in (60000, 3000, 1000)]
    [4000, 2000, 500]
    """
    longest = int(connection.get("socket.timeout.ms", _PATIENCE_MS + _SPARE_MS)) - _SPARE_MS
    return max(_LEAST_MS, min(_PATIENCE_MS, longest))


def _dotted(name: str) -> str:
    own = name.endswith("_cb") or name in {"log_level", "logger", "on_commit"}
    return name if own else name.replace("_", ".")
