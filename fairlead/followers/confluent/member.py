"""One consumer's membership in its group, as a state machine.

Belongs here: the states and the steps between them; joining, owning and leaving; repair after an
interrupted call. Belongs elsewhere: the client library's types (`consumer`), the agreement round of
one generation (`generation`, `agreement_round`), and the log (`log_listener`).

A member announces itself only if it has read all records of a generation, so it reads the log
before it joins the group. A member that does not announce itself keeps its partitions from `range`.
A member that announced itself owns nothing until it reads an assignment record. If that takes too
long, the member requests a rebalance, and does not announce itself in the next generation.

While a group is converted to the consumer protocol (KIP-848), the broker assigns partitions. A
member then does not announce itself, but owns what the broker assigned, because the broker might
assign a partition that an assignment record gave to another member.

Each step changes the state before it acts. If a call is interrupted, `_unfinished` stays True. The
next call then leaves the group and joins again, unless the state is consistent. The state of one
generation has no effect in the next one.
"""

import logging
import random
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Final, Literal, Protocol, TypeVar

from fairlead.errors import ConfigurationError
from fairlead.followers.confluent.agreement_round import AgreementRound, Verdict
from fairlead.followers.confluent.generation import Backlog, Generation, RangeShare
from fairlead.followers.confluent.log_listener import REQUEST_S, LogListener
from fairlead.followers.confluent.rejoin_policy import RejoinPolicy
from fairlead.followers.core.clock import Clock
from fairlead.followers.core.follower import FollowOptions
from fairlead.followers.core.plan_cache import PlanState
from fairlead.followers.core.plan_or_fallback import lapsed
from fairlead.followers.core.plan_reader import PlanReader
from fairlead.followers.core.status import BROKER_ASSIGNS, FollowerState, FollowerStatus
from fairlead.wire.agreement import Announcement, Mark
from fairlead.wire.members import AssignmentNote
from fairlead.wire.partitions import Pair, Partitions, by_topic, pairs

log = logging.getLogger(__name__)

Event = Literal["assign", "revoke", "lost"]
Fetched = TypeVar("Fetched")

#: Seconds. Maximum time of one call of the client during an agreement round.
_SLICE_S: Final = 0.02
#: Seconds. Maximum time of one read of the coordination log.
_READ_S: Final = 0.02
#: Seconds between two calls of `_step` after an agreement round, if a rebalance request is pending
#: or the log is not confirmed.
_SETTLED_S: Final = 0.2
#: Seconds between two calls of `_step` after an agreement round, if no rebalance request is pending
#: and the log is confirmed.
_AT_REST_S: Final = 3.0
#: Seconds. If less time is left, `fetch` returns without another call of the client, which cannot
#: wait for a fraction of a millisecond.
_SHORTEST_S: Final = 0.006
#: Maximum number of reads of the log in `subscribe`, if the log is not confirmed earlier.
_READS_TO_JOIN: Final = 25
#: Seconds. After this time, the member joins the group even if it could not read its test record.
_LISTEN_S: Final = 2.0
#: Seconds. If rebalances interrupt agreement rounds for this long, this member stops announcing
#: itself. It then owns its partitions from `range`.
_INTERRUPTED_S: Final = 3.0
#: Seconds. The members in an assignment record are sorted. Before a rebalance request for a newer
#: plan, each member waits this much longer than the previous member in the record.
_TURN_S: Final = 4.0
#: Seconds. The planner reads assignment records. So a member writes the record again after this
#: time, well before the topic's retention removes the record.
REPEAT_ASSIGNMENT_S: Final = 4 * 60 * 60.0
_UNDECIDED: Final = AssignmentNote(
    fallback_reason="a rebalance is under way, or no member has written an assignment yet"
)


class State(Enum):
    """What a member is doing. `TABLE` describes each state."""

    OUTSIDE = "outside"
    LISTENING = "listening"
    JOINING = "joining"
    AGREEING = "agreeing"
    FOLLOWING = "following"
    LEFT_OUT = "left out"
    KEEPING = "keeping"
    WITHOUT = "without"
    DROPPED = "dropped"


#: The states of a member whose agreement round has ended.
SETTLED: Final = frozenset({State.FOLLOWING, State.LEFT_OUT, State.KEEPING, State.WITHOUT})
_AFTER_ROUND: Final = frozenset({State.AGREEING, State.JOINING, State.OUTSIDE})
#: The states that may follow each state. Each comment describes the state and the partitions that
#: the member owns in it.
TABLE: Final = {
    # The member is not subscribed, or is about to join again. Owns nothing.
    State.OUTSIDE: frozenset({State.LISTENING}),
    # The member reads the log until the log is confirmed, for at most two seconds, and then joins.
    # Owns nothing.
    State.LISTENING: frozenset({State.JOINING, State.OUTSIDE}),
    # The client is joining the group, and no generation has begun. Owns nothing.
    State.JOINING: frozenset({State.AGREEING, State.DROPPED, State.OUTSIDE}),
    # A generation has begun. `Generation.share` shows whether the member waits for an
    # assignment record. Owns nothing.
    State.AGREEING: SETTLED | {State.JOINING, State.OUTSIDE},
    # An assignment record lists the member. The member requests a rebalance if there is a newer
    # plan. Owns the partitions that the record assigns to it.
    State.FOLLOWING: _AFTER_ROUND,
    # An assignment record does not list the member. The member requests a rebalance. Owns its
    # partitions from `range`, unless the record assigns them to other members.
    State.LEFT_OUT: _AFTER_ROUND,
    # The member did not announce itself. It requests a rebalance, unless the broker assigns
    # partitions (KIP-848). Owns what `range` or the broker assigned.
    State.KEEPING: _AFTER_ROUND,
    # The member announced itself, but stopped waiting for an assignment record. It requests a
    # rebalance. Owns nothing.
    State.WITHOUT: _AFTER_ROUND,
    # The group dropped the member, and its client joins again. The member leaves, so that it can
    # read the log before it joins. Owns nothing.
    State.DROPPED: frozenset({State.OUTSIDE}),
}


class GroupClient(Protocol):
    """The operations of the client library's consumer that a member needs."""

    def identity(self) -> tuple[int, str]:
        """Return the generation and member id, read atomically; (-1, "") outside a group."""

    def subscribe(self, topics: Sequence[str]) -> None:
        """Join the group, or join it again."""

    def unsubscribe(self) -> None:
        """Leave the group."""

    def own(self, share: Sequence[Pair]) -> None:
        """Assign only these partitions to the consumer."""

    def disown(self) -> None:
        """Assign no partitions to the consumer."""

    def owned(self) -> list[Pair] | None:
        """Return the consumer's assigned partitions; None: the client is closing."""

    def notify(self, event: Event, share: Sequence[Pair]) -> None:
        """Call the application's callback for this event."""


class FollowingMember:
    """One consumer's membership in its group. Not thread-safe.

    Parameters
    ----------
    group, client_id
        The group id, and the consumer's name in plans.
    options
        How to follow plans.
    client, listener, reader
        The consumer, the listener to the coordination log, and the reader of plans.
    clock
        The time source.
    rng
        Generates random delays, which spread the members' rebalance requests over time.
    """

    def __init__(
        self,
        *,
        group: str,
        client_id: str,
        options: FollowOptions,
        client: GroupClient,
        listener: LogListener,
        reader: PlanReader,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        #: Whether the application itself has called `assign` or `unassign` in its last callback.
        self.touched = False
        self.state = State.OUTSIDE
        self._group = group
        self._client_id = client_id
        self._options = options
        self._client = client
        self._listener = listener
        self._reader = reader
        self._clock = clock
        self._now = clock.monotonic
        self._asking = RejoinPolicy(options.rejoin_jitter_s, rng)
        self._status = FollowerState(clock, _UNDECIDED)
        self._topics: tuple[str, ...] = ()
        self._unfinished = False
        self._next_step_at, self._slice_s = float("-inf"), _SLICE_S
        # Used before a generation begins: when the member began to read the log, which log it has
        # read since then, the records of this log, and the partitions from `range`.
        self._listening_since = 0.0
        self._heard_through: object = None
        self._backlog = Backlog()
        self._range_share: Partitions | None = None
        #: The present generation, or the last one if it has ended. The client may return to the
        #: last generation if it subscribes again.
        self.generation: Generation | None = None
        self._counts: dict[str, int] = {}
        #: The partitions that this member has assigned to the client; None: the application has
        #: assigned others.
        self._share: list[Pair] | None = []
        #: Whether the application's assign callback has run, and its revoke callback not yet.
        self._announced_share = False
        # Monotonic time until which this member does not announce itself, because earlier rounds
        # ended without a decision.
        self._silent_until = float("-inf")
        # Seconds spent in interrupted rounds.
        self._spent_s = 0.0
        # Monotonic time to write the assignment record again; infinite if another member writes it.
        self._repeat_at = float("inf")
        self._logged_reason: str | None = None
        self._known_state: PlanState | None = None

    @property
    def news(self) -> bool:
        """Whether the state of the plan has changed since the agreement round ended."""
        return self._reader.state is not self._known_state and self.state in SETTLED

    def status(self, owned: Iterable[Pair]) -> FollowerStatus:
        """Return the plan follower's status, given the partitions that the consumer owns."""
        return self._status.status(
            self._group,
            self._reader,
            owned,
            name=self._client_id,
            plan_topic=self._options.plan_topic,
            rejoins_asked=self._asking.asked_for_plans,
        )

    def close(self) -> None:
        """Close every connection."""
        self._status.leave()
        try:
            self._reader.close()
        finally:
            self._listener.close()

    def subscribe(self, topics: Sequence[str]) -> None:
        """Subscribe to topics; join once the log is confirmed, in this call or in a later `fetch`.

        Raises
        ------
        ConfigurationError
            The coordination topic is compacted, or is missing and this client is not permitted to
            create it.
        """
        self._unfinished = True
        self._topics = tuple(sorted(set(topics)))
        self._next_step_at = float("-inf")
        if self.state is State.DROPPED:
            self._leave()
        if self.state is State.OUTSIDE:
            self._listen()
            for _ in range(_READS_TO_JOIN):  # usually one read is enough
                if not self._awaits_log:
                    break
                self._read(_READ_S)
                self._join_if_ready()
        elif self.state is not State.LISTENING:
            self._client.subscribe(self._topics)
        self._unfinished = False

    def unsubscribe(self) -> None:
        """Leave the group."""
        self._unfinished = True
        self._topics = ()
        self._leave()
        self._listener.close()
        self._unfinished = False

    def fetch(
        self, fetch: Callable[[float], Fetched], timeout: float | None, *, nothing: Fetched
    ) -> Fetched:
        """Fetch records in short calls, and do the member's pending work between the calls.

        Parameters
        ----------
        fetch
            Function that fetches records, called with a maximum wait in seconds. It should return
            early if a generation begins or ends, or the state of the plan changes.
        timeout
            Maximum seconds in total; None or below 0: no limit.
        nothing
            The result of `fetch` if there are no records.
        """
        now = self._now()
        deadline = float("inf") if timeout is None or timeout < 0 else now + timeout
        while True:
            if self._unfinished:
                self._heal()
            self._unfinished = True
            if now >= self._next_step_at or self.news:
                self._step(min(_READ_S, max(0.0, deadline - now)))
            fetched = fetch(min(self._slice_s, max(0.0, deadline - self._now())))
            if self.state is State.DROPPED:
                self._rejoin()
            self._unfinished = False
            now = self._now()
            if fetched != nothing or deadline - now < _SHORTEST_S:
                return fetched

    def assigned(self, partitions: Sequence[Pair]) -> None:
        """Begin a generation, in which the member owns nothing at first.

        The client calls this with the partitions that `range` assigned.
        """
        # Call own() first: if this callback failed before it assigned anything, confluent-kafka
        # would assign the partitions from `range`.
        self._client.own([])
        self._announced_share, self._share = False, []
        self._range_share = {
            topic: tuple(numbers) for topic, numbers in by_topic(partitions).items()
        }
        self._next_step_at = float("-inf")
        try:
            self._begin()
        except Exception:
            log.exception("Cannot begin a round of agreement; will try again at the next poll()")

    def revoked(self) -> None:
        """Give up all partitions; the client calls this before it joins again."""
        self._release("revoke")

    def lost(self) -> None:
        """Give up all partitions; the client calls this if other members may own them already."""
        self._release("lost")

    # Methods that join and leave the group

    def _enter(self, state: State) -> None:
        if state is not self.state and state not in TABLE[self.state]:
            raise AssertionError(f"{state} cannot be the next state after {self.state}")
        self.state = state

    @property
    def _awaits_log(self) -> bool:
        """Whether the consumer will join the group as soon as the coordination log is confirmed."""
        return self.state is State.LISTENING and self._listener.works

    @property
    def _is_urgent(self) -> bool:
        """Whether the member should read the log often, because it is agreeing or about to join."""
        return self.state is State.AGREEING or self._awaits_log

    def _listen(self, *, confirm: bool = True) -> None:
        """Begin to read the coordination log, before the consumer joins its group.

        With `confirm`, the member first writes a test record, and reads the log up to this record.
        Earlier records may be from a deleted group of the same name, because a new group's
        generations start at 1 again. Records of this member's generation come later.
        """
        self._listening_since = self._now()
        if confirm:
            self._listener.confirm()
        self._status.join()
        self._enter(State.LISTENING)
        self._join_if_ready()

    def _join_if_ready(self) -> None:
        """Join the group if the coordination log is confirmed.

        Otherwise, join after two seconds, or immediately if this member must not announce itself.
        """
        try:
            self._listener.open()
        except ConfigurationError:
            self._unfinished = False
            raise
        confirmed = self._listener.confirmed
        now = self._now()
        if not confirmed and self._silent_until <= now < self._listening_since + _LISTEN_S:
            return
        self._heard_through = self._listener.log if confirmed else None
        self._enter(State.JOINING)
        self._client.subscribe(self._topics)

    def _leave(self) -> None:
        self._range_share, self._heard_through = None, None
        self._next_step_at = float("-inf")
        self._end_round()
        self._backlog.clear()
        self._enter(State.OUTSIDE)
        if not self._topics:
            self._status.leave()
        self._client.unsubscribe()

    def _rejoin(self) -> None:
        """Leave the group, and join it as a new member.

        Subscribing again without leaving might not start a rebalance. A dropped member must first
        write and read a new test record. A member that was not dropped joins immediately if the
        log is confirmed.
        """
        confirm = self.state is State.DROPPED
        self._leave()
        self._listen(confirm=confirm)

    def _heal(self) -> None:
        """Leave and join again if an interrupted call left the state inconsistent."""
        if not self._is_whole():
            log.warning("A call was interrupted in the middle of a rebalance; joining again")
            self._leave()
            if self._topics:
                self._listen()
        self._unfinished = False

    def _is_whole(self) -> bool:
        if not self._topics:
            return self.state is State.OUTSIDE
        return (
            self.state in SETTLED
            and self._range_share is None
            and self._is_current()
            and (self._share is None or sorted(self._client.owned() or ()) == self._share)
        )

    def _is_current(self) -> bool:
        """Whether the client is still in the generation `self.generation`."""
        return self.generation is not None and self.generation.key == self._client.identity()

    def _release(self, event: Literal["revoke", "lost"]) -> None:
        """Give up all owned partitions: call the application's callback, end the agreement round.

        The client's list of revoked partitions is not used, because it contains the partitions that
        `range` assigned.
        """
        self._range_share = None
        self._next_step_at = float("-inf")
        self.touched = False
        error = None
        if self._announced_share:
            owned = self._client.owned()
            error = self._call_back(event, self._share or [] if owned is None else owned)
        self._end_round()
        # Discard the records: the client joins its next generation only after this call, so all
        # records so far are of other generations.
        self._backlog.clear()
        self._heard_through = self._listener.log if self._listener.confirmed else None
        if not self.touched:
            self._client.disown()
        self._announced_share, self._share = False, []
        if event == "lost" and self.state is State.JOINING:
            self._enter(State.DROPPED)
        self._raise(error)

    def _call_back(self, event: Event, share: Sequence[Pair]) -> BaseException | None:
        """Call the application's callback; return its exception, which the caller raises later."""
        self.touched = False
        try:
            self._client.notify(event, share)
        except BaseException as error:  # noqa: BLE001 - returned to the caller, which raises it
            return error
        return None

    def _raise(self, error: BaseException | None) -> None:
        if error is not None:
            self._unfinished = False
            raise error

    # Methods that carry out the steps of `fetch`

    def _step(self, wait_s: float) -> None:
        """Do pending work: join, read the log, write an assignment, own partitions, or rejoin."""
        if self.state is State.DROPPED:
            self._rejoin()
        if self.state is State.LISTENING:
            self._join_if_ready()
        if self._range_share is not None:
            self._begin()
        self._read(wait_s if self._is_urgent else 0.0)
        if self.generation is not None:
            self._advance(self.generation)
        if self._should_rejoin():
            self._rejoin()
        self._slice_s = _SLICE_S
        if self.state in SETTLED:
            at_rest = self._listener.confirmed and not self._asking.pending
            self._slice_s = _AT_REST_S if at_rest else _SETTLED_S
        self._next_step_at = self._now() + self._slice_s
        if self._is_urgent:
            self._slice_s, self._next_step_at = 0.0, float("-inf")

    def _advance(self, generation: Generation) -> None:
        """Continue the agreement round. Afterwards, write the assignment record again when due."""
        if self.state is not State.AGREEING:
            self._repeat_if_due(generation)
            return
        verdict = generation.step()
        if generation.share is RangeShare.ABANDONED:
            self._be_silent()
        if verdict is not None:
            self._own(generation, verdict)

    def _read(self, wait_s: float) -> None:
        """Read the coordination log. If it is broken, reopen it; records may then be missed."""
        if not self._topics:
            return
        # During an agreement round, `Generation` handles a broken log.
        if not self._listener.works and self.state is not State.AGREEING:
            self._backlog.clear()
            try:
                self._listener.open()
            except ConfigurationError as error:
                self._listener.doubt(str(error))
        was_confirmed = self._listener.confirmed
        for record, epoch in self._listener.read(wait_s):
            if isinstance(record, Mark):
                if self.state is State.LISTENING:
                    self._backlog.clear()
                continue
            self._backlog.add(record, epoch)
            if self.generation is not None:
                self.generation.round.hear(record, self._now(), epoch=epoch)
        if self._listener.confirmed and not was_confirmed:
            self._ask_if_log_changed()
            self._asking.log_works(self._now())

    def _ask_if_log_changed(self) -> None:
        """Request a rebalance if the group's log has changed since the round.

        The log changes if the coordination topic gets more partitions or is created again. All
        members must read the next decision in the same log, so the request is delayed until the
        other members have probably opened the new log, too.
        """
        generation = self.generation
        if generation is None or self.state not in SETTLED | {State.AGREEING}:
            return
        if generation.through not in {None, self._listener.log}:
            self._asking.log_moved(self._now())

    def _should_rejoin(self) -> bool:
        """Whether to leave and join again now: to take part in a round, or to adopt a newer plan.

        If the member joined before the coordination log was confirmed, it also leaves, because it
        must read the log before it joins.
        """
        now, confirmed = self._now(), self._listener.confirmed
        if self.state is State.JOINING:  # a member must read the log before it joins
            unheard = confirmed and self._heard_through is not self._listener.log
            return unheard and self._range_share is None and now >= self._silent_until
        if self.state not in SETTLED:
            return False
        state = self._known_state = self._reader.state
        if (self.state is State.WITHOUT or confirmed) and self._asking.to_take_part(now):
            log.info("Group %s: requesting a rebalance, so that members agree again", self._group)
            return True
        over = lapsed(state, self._clock.utc())
        if confirmed and self._asking.to_adopt(state, now, lapsed=over):
            log.info("Group %s: requesting a rebalance, to adopt a newer plan", self._group)
            return True
        return False

    # Methods for one generation

    def _begin(self) -> None:
        """Begin the agreement round of a new generation; announce this member if permitted."""
        number, member = self._client.identity()
        if number < 0 or not member or self._range_share is None:
            return
        known, agreement_log = self.generation, self._listener.log
        again = known is not None and known.key == (number, member)
        if known is None or not again or known.round.me.given != self._range_share:
            me = Announcement(
                generation=number,
                member=member,
                client_id=self._client_id,
                topics=self._topics,
                given=self._range_share,
                seen=self._reader.state.seen,
                log="" if agreement_log is None else agreement_log.identity,
            )
            generation = Generation(
                AgreementRound(me, self._counts),
                self._listener,
                self._reader,
                self._clock,
                self._options.read_timeout_s,
                self._counts,
            )
            for record, epoch in self._backlog:
                generation.round.hear(record, self._now(), epoch=epoch)
            # If the partitions change within a generation, the broker has assigned them.
            reason = BROKER_ASSIGNS if again else self._reason_to_keep(generation.round)
            if reason is None and agreement_log is not None:
                generation.announce(agreement_log)
            else:
                generation.keep(reason)
            self.generation = generation
        # Otherwise the client subscribed again and got the same partitions. The round continues.
        self._enter(State.AGREEING)
        self._range_share = None

    def _reason_to_keep(self, round_: AgreementRound) -> str | None:
        """Return why this member must not announce itself; None if it may."""
        agreement_log, listener = self._listener.log, self._listener
        if agreement_log is not None and listener.works and agreement_log.broker_assigns(REQUEST_S):
            return BROKER_ASSIGNS
        if self._now() < self._silent_until:
            return "the previous agreement round was abandoned"
        if not self._backlog.whole:
            return "the coordination topic has more records than this member keeps"
        if (
            agreement_log is None
            or agreement_log is not self._heard_through
            or not listener.confirmed
        ):
            return listener.problem or "the log was not read before this member joined"
        return "the other members did not wait for this member" if round_.over else None

    def _own(self, generation: Generation, verdict: Verdict) -> None:
        """Own the partitions in a round's verdict, unless the client's generation has ended."""
        if verdict.problem is not None:
            self.unsubscribe()
            raise ConfigurationError(f"PlanConsumer: {verdict.problem}")
        if not self._is_current():
            self._end_round()
            return
        share = sorted(pairs(verdict.share))
        self._announced_share, self._share = True, share
        error = self._call_back("assign", share)
        if self.state is State.AGREEING:  # unless the application's callback has left the group
            if self.touched:
                self._share = None
            else:
                self._client.own(share)
            self._settle(generation, verdict)
        self._raise(error)

    def _settle(self, generation: Generation, verdict: Verdict) -> None:
        """Enter the state that follows from a round's verdict, and schedule rebalance requests."""
        round_ = generation.round
        where = f"Group {self._group}, generation {round_.me.generation}"
        if verdict.listed and round_.assignment is not None:
            assignment, state = round_.assignment, State.FOLLOWING
            note = AssignmentNote(
                assignment.plan_version,
                assignment.seen,
                assignment.fallback_reason,
                decided=assignment.seen,
            )
            new_fallback = note.fallback_reason not in (None, self._logged_reason)
            # Only the member that wrote the assignment record logs a warning, not the whole group.
            log.log(
                logging.WARNING
                if new_fallback and assignment.member == round_.me.member
                else logging.INFO,
                "%s, %d members: the assignment follows %s",
                where,
                len(assignment.shares),
                note.followed(),
            )
            turn = sorted(assignment.shares).index(round_.me.member)
            self._repeat_at = float("inf") if turn else self._now() + REPEAT_ASSIGNMENT_S
            seen, over = note.known(by_leader=True)
            self._asking.settle(seen, lapsed=over, turn_s=turn * _TURN_S)
            self._status.settle(note)
            self._logged_reason = note.fallback_reason
        elif generation.reason == BROKER_ASSIGNS:
            log.info("%s: %s", where, BROKER_ASSIGNS)
            self._status.settle(AssignmentNote(fallback_reason=BROKER_ASSIGNS), "range")
            state = State.KEEPING
        else:
            state = self._settle_without(generation, verdict, where)
        self._spent_s = 0.0
        self._enter(state)

    def _settle_without(self, generation: Generation, verdict: Verdict, where: str) -> State:
        """Handle a round that ended without this member; return the state to enter."""
        reason = (
            generation.reason
            or self._listener.problem
            or "the other members did not wait for this member"
        )
        if generation.share is RangeShare.ABANDONED:
            state = State.WITHOUT
            self._asking.given_up(self._now())
        else:
            state = State.KEEPING if generation.share is RangeShare.KEPT else State.LEFT_OUT
            self._asking.left_out(self._now())
        keeps_share = state is not State.WITHOUT and verdict.share == generation.round.me.given
        doing = "keeping its share of range" if keeps_share else "owning nothing"
        log.warning("%s: %s: %s", where, doing, reason)
        note = AssignmentNote(fallback_reason=f"{doing}: {reason}")
        self._status.settle(note, "range" if keeps_share else "nothing")
        self._repeat_at = float("inf")
        return state

    def _end_round(self) -> None:
        """End the present generation and its round, before the client joins again or leaves."""
        generation = self.generation
        if generation is not None and self.state is State.AGREEING:
            self._spent_s += generation.waited_s
            if generation.unread or self._spent_s >= _INTERRUPTED_S:
                self._be_silent()
                generation.abandon("another rebalance came before the members agreed")
        if self.state is State.AGREEING or self.state in SETTLED:
            self._enter(State.JOINING)
        self._repeat_at = float("inf")
        self._asking.unsettle()
        self._status.unsettle()

    def _be_silent(self) -> None:
        """For some time, do not announce this member, which then keeps its `range` partitions."""
        self._silent_until = self._now() + 0.8 * self._asking.pause_s

    def _repeat_if_due(self, generation: Generation) -> None:
        """Write the assignment record again before retention removes it.

        Members ignore the copy, because the first record decides.
        """
        if self._now() < self._repeat_at:
            return
        self._repeat_at = self._now() + REPEAT_ASSIGNMENT_S
        agreement_log, assignment = self._listener.log, generation.round.assignment
        if assignment and agreement_log and agreement_log is generation.through:
            agreement_log.append(assignment)
