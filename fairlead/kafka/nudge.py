"""The nudge: a member that joins for a moment, so that the broker computes a group's target anew.

Belongs here: joining and leaving without harm. Does not: which groups need it, and whether it has
worked (`fairlead.workflows.nudging`).

Nothing in Kafka has a broker assign because a plan has arrived: a group's target is computed after
a join, a leave or another subscription. The nudge subscribes to the plan topic alone: the broker's
own assignors, where one of them is at work, give it partitions of that, and touch nobody else's. It
names no assignor, which would be a vote; it is not static; it reads nothing and commits nothing.
Killed, it is a ghost until its session ends, which has the target computed once more.

It is no consumer, but the three requests of one: a client that consumes takes some tenth of a
second to know its coordinator, and a connection or three for each group.
"""

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Self

from fairlead.common.kafka_python import connect
from fairlead.kafka.consumer_protocol import NUDGE, NUDGE_RACK
from fairlead.kafka.kafka_python_settings import kafka_python_settings
from fairlead.settings import KafkaSettings

if TYPE_CHECKING:  # imported when somebody is nudged: it takes as long as all else of the planner
    from kafka.admin import KafkaAdminClient

#: How long it may take to give up partitions: of topics that nobody else reads.
_GIVES_UP_MS: Final = 45_000
_JOINS, _LEAVES = 0, -1  # in the place of an epoch


class NudgeConnection:
    """What nudges join and leave by. A context manager; not for several threads.

    Parameters
    ----------
    settings
        How to reach the cluster, and the plan topic.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        self.topic = settings.plan_topic
        timeout_ms = int(settings.request_timeout_s * 1000)
        self._settings = {
            **kafka_python_settings(settings.librdkafka()),
            "client_id": NUDGE,
            "request_timeout_ms": timeout_ms,
            "bootstrap_timeout_ms": timeout_ms,
        }
        self._admin: KafkaAdminClient | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it; it opens again when it is needed."""
        if self._admin is not None:
            self._admin.close()
            self._admin = None

    def beat(self, group: str, heartbeat: Mapping[str, Any]) -> Any:
        """Send a heartbeat to the coordinator of a group; returns its answer.

        Raises
        ------
        kafka.errors.KafkaError
            It does not answer.
        """
        from kafka.admin import KafkaAdminClient  # noqa: PLC0415 - see above

        if self._admin is None:
            self._admin = connect(KafkaAdminClient, self._settings)
        return self._admin._manager.run(_send, self._admin, group, heartbeat)  # noqa: SLF001 - no public way to send


async def _send(admin: "KafkaAdminClient", group: str, heartbeat: Mapping[str, Any]) -> Any:
    from fairlead.kafka.messages.consumer_group_heartbeat import (  # noqa: PLC0415 - see there
        ConsumerGroupHeartbeatRequest,
    )

    found = await admin._find_coordinator_ids([group])  # noqa: SLF001 - as above
    request = ConsumerGroupHeartbeatRequest(group_id=group, **heartbeat)
    return await admin._manager.send(request, node_id=found[group])  # noqa: SLF001 - as above


class Nudge:
    """One nudge of one group, which must be of the consumer protocol and have such a member.

    A context manager; leaves the group on exit.

    Parameters
    ----------
    settings
        How to reach the cluster, and the plan topic.
    group, version
        Which group, and the plan that the broker is to know: an assignor that has not read that
        version can tell.
    by
        A connection that several share; None: one of its own.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        group: str,
        version: int,
        *,
        by: NudgeConnection | None = None,
    ) -> None:
        self._owns = by is None
        self._connection = NudgeConnection(settings) if by is None else by
        self._group = group
        self._rack = f"{NUDGE_RACK}{group}:{version}"
        self._member = str(uuid.uuid4())
        self._epoch = _JOINS
        self._sent = False  # whether the coordinator may know of it
        self._refused = ""

    def __enter__(self) -> Self:
        self.join()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.leave()

    def join(self) -> None:
        """Join the group, or try to: while a coordinator moves, `refused` tries again."""
        self.refused()

    def refused(self) -> str:
        """Take part for a moment; returns why it cannot, or nothing.

        A target that it was too early for is computed now, if it is time by now.
        """
        if not self._refused:
            self._refused = self._beat()
        return self._refused

    def leave(self) -> None:
        """Leave the group."""
        from kafka.errors import KafkaError  # noqa: PLC0415 - see above

        try:
            if self._sent:
                self._connection.beat(self._group, {**self._who(), "member_epoch": _LEAVES})
        except KafkaError:
            self._connection.close()  # then its session ends by itself
        finally:
            self._sent = False
            if self._owns:
                self._connection.close()

    def _beat(self) -> str:
        from kafka import errors  # noqa: PLC0415 - see above

        heartbeat = {**self._who(), "member_epoch": self._epoch}
        if self._epoch == _JOINS:
            heartbeat |= {
                "rack_id": self._rack,
                "rebalance_timeout_ms": _GIVES_UP_MS,
                "subscribed_topic_names": [self._connection.topic],
                "topic_partitions": [],
            }
            self._sent = True
        try:
            answer = self._connection.beat(self._group, heartbeat)
            if answer.error_code:
                raise errors.for_code(answer.error_code)(answer.error_message or "")
        except (errors.UnknownMemberIdError, errors.FencedMemberEpochError):
            self._epoch = _JOINS  # it is out, and comes again
        except errors.KafkaError as error:
            passes = error.retriable or isinstance(error, errors.UnknownBrokerIdError)
            if not passes:
                return str(error)
            if not isinstance(error, errors.CoordinatorLoadInProgressError):
                self._connection.close()  # which remembers coordinators for good
        else:
            self._epoch = answer.member_epoch
        return ""

    def _who(self) -> dict[str, Any]:
        return {"member_id": self._member}
