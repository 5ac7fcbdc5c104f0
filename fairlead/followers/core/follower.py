"""One consumer's plan follower: reads plans, decides as group leader, and requests rebalances.

Belongs here: a plan follower's part in rebalances. Belongs elsewhere: the types and callbacks of
client libraries (each has its own package), and the rules (`plan_or_fallback`, `rejoin`).
"""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Self

from fairlead.errors import ConfigurationError
from fairlead.followers.core.clock import Clock
from fairlead.followers.core.cooperation import first_round
from fairlead.followers.core.plan_or_fallback import Decision, decide, lapsed
from fairlead.followers.core.plan_reader import PlanReader, PlanSource
from fairlead.followers.core.rejoin import RejoinSchedule
from fairlead.followers.core.status import BROKER_ASSIGNS, FollowerState, FollowerStatus
from fairlead.wire.fit import Shares
from fairlead.wire.members import (
    AssignmentNote,
    GroupMember,
    SubscriptionNote,
    decode_assignment,
    encode_note,
)
from fairlead.wire.partitions import Pair
from fairlead.wire.record import NOTHING, Identity
from fairlead.wire.signing import Verifier

log = logging.getLogger(__name__)

#: Used while the member joins, until this assignor receives an assignment. If the group has chosen
#: another assignor, this assignor receives none.
_JOINING: Final = AssignmentNote(
    fallback_reason="a rebalance is under way, or some member of the group does not follow plans"
)

#: Used for assignments without user data. They come from the broker, because a group leader always
#: adds user data.
_FROM_BROKER: Final = AssignmentNote(fallback_reason=BROKER_ASSIGNS)


@dataclass(frozen=True)
class FollowOptions:
    """How a group follows its plans.

    Parameters
    ----------
    plan_topic
        The topic with plans.
    read_timeout_s
        Maximum seconds for which a rebalance waits until the plan follower has read the plan topic
        to its end, including the newest plan that any member has read.
    rejoin_jitter_s
        Longest random delay before a member requests a rebalance for a new plan; None: the plan
        takes effect at the next rebalance.
    public_keys
        Public keys as `id:base64 of SPKI DER`, separated by commas: follow only plans that are
        signed with one of these keys. Needs the extra `signed`.
    report_work
        Whether to measure the processing time of records and report it with each commit.

    Raises
    ------
    ConfigurationError
        A key is empty or cannot be used; a time is negative or not a number of seconds.
    """

    plan_topic: str = "fairlead.plans"
    read_timeout_s: float = 5.0
    rejoin_jitter_s: float | None = 5.0
    public_keys: str | None = None
    report_work: bool = True

    def __post_init__(self) -> None:
        self.verifier()
        jitter_s = 0.0 if self.rejoin_jitter_s is None else self.rejoin_jitter_s
        for name, seconds in (
            ("read_timeout_s", self.read_timeout_s),
            ("rejoin_jitter_s", jitter_s),
        ):
            if not (isinstance(seconds, int | float) and 0 <= seconds <= threading.TIMEOUT_MAX):
                raise ConfigurationError(f"{name} is {seconds!r}; give seconds, 0 or more")

    def verifier(self) -> Verifier | None:
        """Return a verifier of signatures; None: plans need no signature."""
        return None if self.public_keys is None else Verifier.from_text(self.public_keys)

    @classmethod
    def taken_from(cls, configs: dict[str, Any]) -> Self:
        """Remove the options from a consumer's configuration, and return them.

        Examples
        --------
        >>> configs = {"group_id": "orders", "plan_topic": "plans"}
        >>> FollowOptions.taken_from(configs).plan_topic, configs
        ('plans', {'group_id': 'orders'})
        """
        names = [field.name for field in fields(cls) if field.name in configs]
        return cls(**{name: configs.pop(name) for name in names})


class Follower:
    """Follows one group's plans for one consumer.

    Reads plans on a daemon thread from construction to `close`. A client's assignor calls
    `subscription` when its member begins to join, `assign` if its member is the group leader, and
    `assigned` when the member has received an assignment.

    Parameters
    ----------
    group
        The group id.
    options
        How to follow plans.
    open_source
        Connects to the plan topic, as for `PlanReader`.
    clock
        The time source; default: the machine's clock.
    new_reader
        Returns the reader of plans; for tests.
    """

    def __init__(
        self,
        group: str,
        options: FollowOptions,
        open_source: Callable[[], PlanSource | None],
        *,
        clock: Clock | None = None,
        new_reader: Callable[..., PlanReader] = PlanReader,
    ) -> None:
        self._group = group
        self._options = options
        self._clock = clock or Clock()
        self._lock = threading.Lock()
        self._schedule = RejoinSchedule(options.rejoin_jitter_s)
        self._request_rejoin: Callable[[], None] | None = None
        self._decided: tuple[Identity, bool] | None = None
        self._new_member = self._unfinished = False
        self._logged_reason: str | None = None
        self._status = FollowerState(self._clock, _JOINING)
        self._rejoins_asked = self._again = 0
        self._name = ""
        self._reader = new_reader(
            group,
            open_source=open_source,
            verifier=options.verifier(),
            on_tick=self._rejoin_if_due,
            clock=self._clock,
        )
        self._reader.serve()

    def status(self, owned: Iterable[Pair] = (), *, outside: bool = False) -> FollowerStatus:
        """Return the plan follower's present status.

        Parameters
        ----------
        owned
            The consumer's partitions.
        outside
            Whether the consumer is in no group. Callers pass this, because clients do not inform
            their assignors when they leave.
        """
        with self._lock:
            (self._status.leave if outside else self._status.join)()
        return self._status.status(
            self._group,
            self._reader,
            owned,
            name=self._name,
            plan_topic=self._options.plan_topic,
            rejoins_asked=self._rejoins_asked,
        )

    def rejoin_by(self, request: Callable[[], None]) -> None:
        """Set the function that makes the consumer rejoin. It is called on the reader's thread."""
        self._request_rejoin = request

    def stop(self) -> None:
        """Stop reading plans; does not wait."""
        self._reader.stop()

    def close(self) -> None:
        """Stop reading plans; waits until the connection is closed."""
        self._reader.close()

    def read_ahead(self) -> None:
        """Wait at most `read_timeout_s` until the plan topic has been read; call before joining.

        Only clients with an event loop need this, since a rebalance must not block the loop.
        """
        self._reader.current(at_least=NOTHING, timeout_s=self._options.read_timeout_s)

    def subscription(self, client_id: str, instance_id: str | None = None) -> bytes:
        """Return the user data of the subscription that this member joins with.

        If a subscription is unchanged, the coordinator may return the old assignment. The user data
        contains the identity of the newest plan, so a new plan changes the subscription.
        """
        with self._lock:
            self._schedule.unsettle()
            self._status.join()
            self._status.unsettle()
            self._decided, self._unfinished = None, False
            self._name = instance_id or client_id
            # After a restart, a static member may be the group leader without knowing it.
            self._new_member = instance_id is not None and not self._status.rebalances
        state = self._reader.state
        return encode_note(
            SubscriptionNote(
                client_id,
                instance_id,
                state.seen,
                lapsed=lapsed(state, self._clock.utc()),
                again=self._again,
            )
        )

    def assign(
        self, members: Sequence[GroupMember], partition_counts: Mapping[str, int]
    ) -> tuple[Shares, bytes]:
        """Return the assignment of all members; called on the group leader.

        Returns
        -------
        shares, user_data
            The partition numbers of each member, by member id and topic, without partitions that a
            cooperative member must give up first; and the user data that every member receives.
        """
        newest, in_force = max((member.seen, not member.lapsed) for member in members)
        state = self._reader.current(at_least=newest, timeout_s=self._options.read_timeout_s)
        now = self._clock.utc()
        decision = decide(state, members, partition_counts, now=now)
        self._log(decision, len(members))
        first = first_round(decision.shares, members)
        over = lapsed(state, now)
        with self._lock:
            self._decided = state.seen, over
        seen, in_force = max((newest, in_force), (state.seen, not over))
        note = AssignmentNote(
            plan_version=decision.plan_version,
            seen=seen,
            fallback_reason=decision.fallback_reason,
            lapsed=not in_force,
            decided=state.seen,
            incomplete=_size(first) < _size(decision.shares),
        )
        return first, encode_note(note)

    def assigned(self, user_data: bytes | None, generation: int) -> None:
        """Handle a new assignment; its user data shows which plan the assignment follows.

        If an assignment has no user data, the broker made the assignment, because the group is
        being converted to the consumer protocol (KIP-848). This member then requests no rebalance.
        """
        note = decode_assignment(user_data) if user_data else _FROM_BROKER
        log.info(
            "Group %s, generation %d: the assignment follows %s",
            self._group,
            generation,
            note.followed(),
        )
        with self._lock:
            self._status.settle(note)
            # Other members may wait for partitions that this member owned before its restart. If
            # they do, this member must join again to complete the rebalance.
            self._unfinished = self._new_member and note.incomplete
            if note is not _FROM_BROKER:
                # If another member has read a newer plan than the leader, only the leader requests
                # a rebalance for that plan. A restarted static member acts as if it were leader.
                seen, over = self._decided or note.known(by_leader=self._new_member)
                self._schedule.settle(seen, lapsed=over)

    def _log(self, decision: Decision, members: int) -> None:
        reason = decision.fallback_reason
        if reason is None:
            log.info(
                "Group %s: as leader, assigning plan version %s to %d members",
                self._group,
                decision.plan_version,
                members,
            )
        elif reason != self._logged_reason:
            log.warning("Group %s: as leader, falling back to range: %s", self._group, reason)
        self._logged_reason = reason

    def _rejoin_if_due(self) -> None:
        if self._request_rejoin is None:
            return
        state = self._reader.state
        with self._lock:
            due = self._schedule.due(
                seen=state.seen,
                now=self._clock.monotonic(),
                lapsed=lapsed(state, self._clock.utc()),
                lease_until=state.lease_until,
            )
            why = "to adopt a plan" if due else None
            if self._unfinished:
                why, self._unfinished = "to complete the rebalance that another member began", False
                self._again += 1
            if why is None:
                return
            self._rejoins_asked += 1
        known = f"version {state.plan.version}" if state.plan else "none"
        log.info(
            "Group %s: requesting a rebalance %s; newest plan read: %s", self._group, why, known
        )
        self._request_rejoin()


def _size(shares: Shares) -> int:
    return sum(len(numbers) for share in shares.values() for numbers in share.values())
