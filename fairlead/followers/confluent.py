"""Follow plans with confluent-kafka: `PlanConsumer`.

Belongs here: what touches confluent-kafka's consumer and its callbacks. Does not: how members agree
(`caller`, `roll_call`), nor the log they agree through (`pins`).

librdkafka has no pluggable assignor: the group runs Kafka's own `range`, and members redistribute
what it gave them by a roll call. Beside members that know no plans each keeps its own.

::

    consumer = PlanConsumer(
        {"bootstrap.servers": "localhost:9092", "group.id": "orders", "client.id": "orders-1"}
    )
    consumer.subscribe(["orders"])
"""

import logging
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Self, TypeVar

from confluent_kafka import Consumer, Message, TopicPartition

from fairlead.errors import ConfigurationError
from fairlead.followers.caller import Caller
from fairlead.followers.confluent_config import check, connection_of
from fairlead.followers.follower import FollowerStatus, FollowOptions
from fairlead.followers.partitions import by_topic
from fairlead.followers.roll_call import Partitions, Verdict

log = logging.getLogger(__name__)

RebalanceCallback = Callable[[Consumer, list[TopicPartition]], None]
Fetched = TypeVar("Fetched")

PIN_TOPIC: Final = "fairlead.pins"
#: The longest that a call to librdkafka may keep a roll call waiting.
_SLICE_S: Final = 0.02
_READ_S: Final = 0.02
_METADATA: Final = b"CGMDv2:"


class PlanConsumer(Consumer):
    """A Consumer whose group follows its plans.

    It is used as any Consumer, from one thread. Members agree within their calls of `poll` and
    `consume`, which keep their timeout; only where a broker does not answer during a rebalance may
    they take two seconds longer, four where the pin topic has to be created. `consume` returns as
    soon as there is something. Rebalance callbacks name what this consumer really owns.

    Parameters
    ----------
    config
        As for Consumer. `group.id` is needed; give each consumer a `client.id` of its own, since
        plans know it by that name.
    options
        How to follow plans.
    pin_topic
        The topic through which the members of groups agree; made when it is missing.
    kwargs
        As for Consumer: more configuration, `logger`, callbacks.

    Raises
    ------
    ConfigurationError
        A setting that plans cannot work with: static membership, another partition assignment
        strategy than range, `group.protocol=consumer`.

    Notes
    -----
    All members must subscribe to the same topics. One that does not is told so by a
    ConfigurationError from `poll` and leaves the group; the others go on.
    """

    def __init__(
        self,
        config: Mapping[str, Any] | None = None,
        *,
        options: FollowOptions | None = None,
        pin_topic: str = PIN_TOPIC,
        **kwargs: Any,
    ) -> None:
        settings = check({**(config or {}), **kwargs})
        super().__init__(settings)
        self._topics: tuple[str, ...] = ()
        self._callbacks: dict[str, RebalanceCallback | None] = {}
        self._joined = self._owning = self._touched = self._closed = False
        self._given: Partitions | None = None
        self._next_step_at = 0.0
        self._caller = Caller(
            settings["group.id"],
            settings.get("client.id", "rdkafka"),
            connection_of(settings),
            options or FollowOptions(),
            pin_topic,
        )

    @property
    def plan_version(self) -> int | None:
        """The plan that this consumer's assignment follows; None: range, or none yet."""
        return self._caller.status().plan_version

    def status(self) -> FollowerStatus:
        """Return what this consumer's follower does at the moment."""
        return self._caller.status()

    def subscribe(
        self,
        topics: Sequence[str],
        on_assign: RebalanceCallback | None = None,
        on_revoke: RebalanceCallback | None = None,
        on_lost: RebalanceCallback | None = None,
    ) -> None:
        """Subscribe to topics, as with Consumer; by name, patterns are refused.

        The consumer joins its group once it listens to the pin topic, here or in a later `poll`.

        Raises
        ------
        ConfigurationError
            A topic is a pattern; or the pin topic is compacted, or may not be created.
        """
        if patterns := [topic for topic in topics if topic.startswith("^")]:
            raise ConfigurationError(
                f"PlanConsumer: {patterns[0]} is a pattern; members must subscribe to equal "
                "topics, which patterns cannot promise. Name the topics"
            )
        self._topics = tuple(sorted(set(topics)))
        self._callbacks = {
            "assign": on_assign,
            "revoke": on_revoke,
            "lost": on_lost or on_revoke,
        }
        self._join()

    def unsubscribe(self) -> None:
        """Leave the group."""
        self._topics = ()
        self._joined = False
        super().unsubscribe()

    def poll(self, timeout: float | None = -1) -> Message | None:
        """Return the next message or event, as Consumer does."""
        return self._fetch(super().poll, timeout, nothing=None)

    def consume(self, num_messages: int = 1, timeout: float | None = -1) -> list[Message]:
        """Return what there is, up to `num_messages`, waiting at most `timeout` for the first."""
        consume = super().consume
        return self._fetch(lambda wait_s: consume(num_messages, wait_s), timeout, nothing=[])

    def assign(self, partitions: list[TopicPartition]) -> None:
        """Start from other positions; in `on_assign`, as with Consumer."""
        self._touched = True
        super().assign(partitions)

    def unassign(self) -> None:
        """Own nothing; in `on_revoke`, as with Consumer."""
        self._touched = True
        super().unassign()

    def close(self) -> None:
        """Leave the group and stop following plans; a second time nothing happens."""
        if self._closed:
            return
        self._closed = True
        self._topics = ()
        # librdkafka aborts on a close that finds a subscription still waiting for its turn.
        try:
            super().unsubscribe()
            super().close()
        finally:
            self._caller.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _fetch(
        self, fetch: Callable[[float], Fetched], timeout: float | None, *, nothing: Fetched
    ) -> Fetched:
        """Fetch in slices, and take part in roll calls between them."""
        now = time.monotonic()
        deadline = float("inf") if timeout is None or timeout < 0 else now + timeout
        while True:
            if now >= self._next_step_at:
                self._step(min(_READ_S, max(0.0, deadline - now)))
            left_s = max(0.0, deadline - time.monotonic())
            slice_s = 0.0 if self._caller.undecided else _SLICE_S
            fetched = fetch(min(slice_s, left_s))
            now = time.monotonic()
            if fetched != nothing or now >= deadline:
                return fetched

    def _step(self, wait_s: float) -> None:
        """Do what is due: join, listen, pin, own, ask for a rebalance."""
        if self._topics and not self._joined:
            self._join()
        if self._given is not None:
            self._begin()
        verdict = self._caller.step(wait_s if self._caller.undecided else 0.0)
        if verdict is not None:
            self._own(verdict)
        if self._joined and self._caller.rejoin_due():
            # Subscribing again would give this member its old place back, without a rebalance.
            super().unsubscribe()
            self._joined = False
            self._join()
        self._next_step_at = 0.0 if self._caller.undecided else time.monotonic() + _SLICE_S

    def _join(self) -> None:
        if self._caller.listen():
            self._joined = True
            super().subscribe(
                list(self._topics),
                on_assign=self._on_assign,
                on_revoke=self._on_revoke,
                on_lost=self._on_lost,
            )

    def _own(self, verdict: Verdict) -> None:
        """Own a verdict's share, if the generation it is for still is this one."""
        if verdict.problem is not None:
            self.unsubscribe()
            raise ConfigurationError(f"PlanConsumer: {verdict.problem}")
        if not self._caller.is_for(*self._identity()):
            return
        share = [
            TopicPartition(topic, number)
            for topic, numbers in sorted(verdict.share.items())
            for number in numbers
        ]
        self._owning, self._touched = True, False
        try:
            if on_assign := self._callbacks["assign"]:
                on_assign(self, share)
        finally:
            if not self._touched:
                super().assign(share)

    def _on_assign(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        """Begin the roll call of a new generation, owning nothing."""
        # Before anything else: where a callback fails, librdkafka's binding assigns range's share.
        super().assign([])
        given = by_topic((one.topic, one.partition) for one in partitions)
        self._given = {topic: tuple(numbers) for topic, numbers in given.items()}
        self._next_step_at = 0.0
        try:
            self._begin()
        except Exception:
            log.exception("A roll call could not begin; trying again in poll")

    def _begin(self) -> None:
        generation, member = self._identity()
        if generation >= 0 and member and self._given is not None:
            self._caller.begin(generation, member, self._topics, self._given)
            self._given = None

    def _on_revoke(self, _: Consumer, __: list[TopicPartition]) -> None:
        self._release("revoke", self._caller.released)

    def _on_lost(self, _: Consumer, __: list[TopicPartition]) -> None:
        self._release("lost", self._caller.lost)

    def _release(self, event: str, note: Callable[[], None]) -> None:
        """Give up what is really owned; librdkafka names range's share."""
        self._given = None
        owning, self._owning, self._touched = self._owning, False, False
        try:
            callback = self._callbacks.get(event)
            if owning and callback is not None:
                callback(self, [TopicPartition(p.topic, p.partition) for p in self.assignment()])
        finally:
            if not self._touched:
                super().unassign()
            note()

    def _identity(self) -> tuple[int, str]:
        """Return the generation and this member's id, from one look; (-1, "") outside a group."""
        raw = bytes(self.consumer_group_metadata())
        if not raw.startswith(_METADATA):
            raise ConfigurationError(
                f"PlanConsumer: this confluent-kafka keeps group metadata as {raw[:7]!r}, not as "
                f"{_METADATA!r}; use a version between 2.8 and 2.16"
            )
        (generation,) = struct.unpack_from("<i", raw, len(_METADATA))
        member = raw[len(_METADATA) + 4 :].split(b"\0")[1].decode()
        return generation, member
