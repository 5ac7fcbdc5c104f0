"""The rebalance trigger: a member that joins a group briefly, so that the broker assigns again.

Belongs here: how a trigger joins and leaves a group. Belongs elsewhere: deciding which groups need
a rebalance trigger, and checking whether it worked (`fairlead.workflows.rebalancing`).

A broker computes a group's assignment after a join, a leave or a change of subscription, not when a
plan arrives. The rebalance trigger subscribes only to the plan topic. So the broker's own assignors
give it only partitions of that topic and do not move other partitions. The rebalance trigger names
no assignor, since brokers would count that as a vote for the assignor. The trigger is not a static
member, and neither reads nor commits. If its process is killed, the trigger remains a member until
its session ends, and then the broker assigns once more.

The trigger is not a real consumer and only sends heartbeats: for each group, a real consumer would
take a tenth of a second to find its coordinator, and up to three connections.
"""

import uuid
from collections.abc import Mapping
from typing import Any, Final, Self

from kafka import errors
from kafka.admin import KafkaAdminClient

from fairlead.kafka.consumer_protocol import TRIGGER, TRIGGER_RACK
from fairlead.kafka.kafka_python_settings import open_admin
from fairlead.kafka.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from fairlead.settings import KafkaSettings

#: Rebalance time-out of the trigger in milliseconds. The value hardly matters, because consumers
#: never wait for partitions of the trigger.
_GIVES_UP_MS: Final = 45_000
_JOINS, _LEAVES = 0, -1  # special member epochs (KIP-848)


class TriggerConnection:
    """The connection that rebalance triggers share. Use it as a context manager, in one thread.

    Parameters
    ----------
    settings
        How to reach the cluster, and the plan topic.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        self.topic = settings.plan_topic
        self._settings = settings
        self._admin: KafkaAdminClient | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection. `send` can open it again."""
        if self._admin is not None:
            self._admin.close()
            self._admin = None

    def send(self, group: str, heartbeat: Mapping[str, Any]) -> Any:
        """Send a heartbeat to the coordinator of a group; return the coordinator's response.

        Raises
        ------
        kafka.errors.KafkaError
            The coordinator does not answer.
        """
        if self._admin is None:
            self._admin = open_admin(self._settings, client_id=TRIGGER)
        return self._admin._manager.run(_send, self._admin, group, heartbeat)  # noqa: SLF001 - no public way to send


async def _send(admin: KafkaAdminClient, group: str, heartbeat: Mapping[str, Any]) -> Any:
    coordinators = await admin._find_coordinator_ids([group])  # noqa: SLF001 - as above
    request = ConsumerGroupHeartbeatRequest(group_id=group, **heartbeat)
    return await admin._manager.send(request, node_id=coordinators[group])  # noqa: SLF001 - as above


class RebalanceTrigger:
    """A rebalance trigger for one group of the consumer protocol.

    A context manager: the trigger joins the group on entry, and leaves on exit.

    Parameters
    ----------
    connection
        The connection, which several triggers may share.
    group, version
        The group and the version of its plan. The trigger sends the version to the broker's
        assignor, so that the assignor notices if it has not read this version yet.
    """

    def __init__(self, connection: TriggerConnection, group: str, version: int) -> None:
        self._connection = connection
        self._group = group
        self._rack = f"{TRIGGER_RACK}{group}:{version}"
        self._member = str(uuid.uuid4())
        self._epoch = _JOINS
        self._sent = False  # a request to join was sent, so the group may have this member
        self._refused = ""

    def __enter__(self) -> Self:
        self.heartbeat()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.leave()

    def heartbeat(self) -> str:
        """Send a heartbeat; return why the coordinator refuses the trigger permanently, or "".

        The first heartbeat joins the group. If the coordinator is moving, the next heartbeat tries
        again. If the broker computes no assignment when the trigger joins, a later heartbeat makes
        the broker compute one.
        """
        if not self._refused:
            self._refused = self._send_heartbeat()
        return self._refused

    def leave(self) -> None:
        """Leave the group."""
        try:
            if self._sent:
                self._connection.send(
                    self._group, {"member_id": self._member, "member_epoch": _LEAVES}
                )
        except errors.KafkaError:
            self._connection.close()  # the member's session will expire
        finally:
            self._sent = False

    def _send_heartbeat(self) -> str:
        heartbeat: dict[str, Any] = {"member_id": self._member, "member_epoch": self._epoch}
        if self._epoch == _JOINS:
            heartbeat |= {
                "rack_id": self._rack,
                "rebalance_timeout_ms": _GIVES_UP_MS,
                "subscribed_topic_names": [self._connection.topic],
                "topic_partitions": [],
            }
            self._sent = True
        try:
            answer = self._connection.send(self._group, heartbeat)
            if answer.error_code:
                raise errors.for_code(answer.error_code)(answer.error_message or "")
        except (errors.UnknownMemberIdError, errors.FencedMemberEpochError):
            self._epoch = _JOINS  # the group has removed this member: join again
        except errors.KafkaError as error:
            passes = error.retriable or isinstance(error, errors.UnknownBrokerIdError)
            if not passes:
                return str(error)
            if not isinstance(error, errors.CoordinatorLoadInProgressError):
                self._connection.close()  # a new client looks up the coordinator again
        else:
            self._epoch = answer.member_epoch
        return ""
