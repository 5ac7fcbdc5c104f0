"""One consumer's part in its group's roll calls, through every generation it lives in.

Belongs here: when to listen, announce, pin, trust the log, and ask for another rebalance. Does not:
the rules within one generation (`roll_call`), the log's own life (`pin_listener`), nor the consumer
that joins and owns (`membership`).

A member announces itself only where it has heard all of a generation, because it listened before it
joined, and where its log was shown to be written and read. Else it keeps what range gave it:
nobody deals that out. Whoever has announced itself owns nothing until the log decides; where that
takes too long, the way on is another generation, in which it announces nothing.

In a group that is being converted to the consumer protocol (KIP-848) the broker assigns, and may
take back from one member what a pin has given to another: there each keeps what it is given.

What a member is doing, by its `Phase` and what became of its `RangeShare` (`states`):

===========  ====================================  =======================  =======================
the member   is told by                            owns                     until
===========  ====================================  =======================  =======================
listens      `_listening_since`, before it joins   nothing                  the log works, or two
                                                                            seconds pass: it joins
is outside   OUTSIDE                               nothing                  `begin`
waits        UNDECIDED, CEDED                      nothing                  the first good pin; a
                                                                            refusal; `trouble`
keeps range  KEPT                                  what range gave          a rebalance, which it
                                                                            asks for
gave up      GIVEN_UP                              nothing                  the same
follows      SETTLED, CEDED, the pin lists it      its share of the pin     a rebalance; it asks
                                                                            for one to adopt a
                                                                            newer plan
is left out  SETTLED, CEDED, the pin does not      what range gave, if the  a rebalance, which it
             list it                               pin deals out none of    asks for
                                                   it; else nothing
===========  ====================================  =======================  =======================

What varies beside these states, and independently of them:

====================  =====================================  =======================================
flag                  is set by                              is cleared by
====================  =====================================  =======================================
`_wanted`             the first `listen`                     nothing
`_listening_since`    `listen`                               `listen`, once the consumer may join
`_heard_through`      `listen`, `released`, `lost`           `left`, and where the log was not shown
                                                             to work
`_must_skip`          `left`                                 `listen`, `lost`: they skip to the end
`_silent_until`       giving up                              time
`_repeat_pin_at`      `settle`, where it is this one's turn  the end of the generation
`Attendance.counted`  the first turn to pin                  the next generation
====================  =====================================  =======================================

One generation goes `begin`, `step` until there is a verdict, `settle`; `released`, `left`, `lost`
and `overtaken` end it. After giving up, a member is silent in the next: it keeps range there.
"""

import logging
import random
from collections.abc import Iterable
from typing import Final

from fairlead.errors import ConfigurationError
from fairlead.followers.confluent.attendance import AGAIN_S, UNREAD, Attendance
from fairlead.followers.confluent.pin_listener import REQUEST_S, Log, PinListener
from fairlead.followers.confluent.pin_log import Sent
from fairlead.followers.confluent.recollection import Recollection
from fairlead.followers.confluent.rejoin_policy import RejoinPolicy
from fairlead.followers.confluent.roll_call import RollCall, Verdict, draw_up
from fairlead.followers.confluent.states import Phase, RangeShare, step
from fairlead.followers.core.clock import Clock
from fairlead.followers.core.follower import FollowOptions
from fairlead.followers.core.plan_cache import PlanState
from fairlead.followers.core.plan_or_fallback import lapsed
from fairlead.followers.core.plan_reader import PlanReader
from fairlead.followers.core.status import BROKER_ASSIGNS, FollowerState, FollowerStatus
from fairlead.wire.members import AssignmentNote
from fairlead.wire.pins import MOST_PARTITIONS, Announcement, Partitions

log = logging.getLogger(__name__)

_TURN_S: Final = 4.0
#: How long to join without the log, once it does not answer.
_LISTEN_S: Final = 2.0
#: How long a roll call may take, and beyond what it may wait for a plan to be read.
_CALL_S: Final = 4.0
_MORE_S: Final = 2.0
#: How long roll calls that follow each other may keep a member from owning something.
_SPENT_S: Final = 3.0
_UNDECIDED: Final = AssignmentNote(
    fallback_reason="a rebalance is under way, or no member has pinned an assignment yet"
)
#: A pin is written again well before the topic's retention removes it, for the planner to read.
REPEAT_PIN_S: Final = 4 * 60 * 60.0


class Participant:
    """Takes part in roll calls for one consumer. For one thread.

    Parameters
    ----------
    group, client_id
        The group id, and this consumer's name in plans.
    options
        How to follow plans.
    listener
        The log through which members agree.
    reader
        Reads plans.
    clock, rng
        What time it is; and what spreads load and guards nothing.
    """

    def __init__(
        self,
        group: str,
        client_id: str,
        options: FollowOptions,
        *,
        listener: PinListener,
        reader: PlanReader,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        self._group = group
        self._client_id = client_id
        self._options = options
        self._listener = listener
        self._reader = reader
        self._clock = clock
        self._now = clock.monotonic
        self._rng = rng
        self._records = Recollection()
        self._counts: dict[str, int] = {}
        #: The log that was listened to before the consumer joined; None: there was none.
        self._heard_through: Log | None = None
        self._listening_since: float | None = None
        self._wanted = False
        self._must_skip = False
        self._attendance: Attendance | None = None
        self._phase = Phase.OUTSIDE
        self._silent_until = float("-inf")
        self._spent_s = 0.0
        self._asking = RejoinPolicy(options.rejoin_jitter_s, rng)
        self._status = FollowerState(clock, _UNDECIDED)
        self._repeat_pin_at: float | None = None
        self._logged_reason: str | None = None
        #: What was known of the plan when it was last asked whether to adopt it.
        self._looked_at: PlanState | None = None

    @property
    def awaits_log(self) -> bool:
        """Whether the log is open, and only has to show that it works before the consumer joins."""
        listening = self._listening_since is not None
        return listening and self._listener.works and not self._listener.shown

    @property
    def undecided(self) -> bool:
        """Whether a roll call is under way."""
        return self._phase is Phase.UNDECIDED

    @property
    def settled(self) -> bool:
        """Whether this member owns what was decided."""
        return self._phase is Phase.SETTLED

    @property
    def news(self) -> bool:
        """Whether this member owns what was decided, and something else is known of the plan."""
        return self._reader.state is not self._looked_at and self.settled

    @property
    def at_rest(self) -> bool:
        """Whether nothing is to be done until there is news."""
        return self.settled and self._listener.shown and not self._asking.pending

    @property
    def plan_version(self) -> int | None:
        """The plan that this consumer's assignment follows; None: range, or none yet."""
        return self._status.note.plan_version

    def status(self, owned: Iterable[tuple[str, int]]) -> FollowerStatus:
        """Return what this follower does at the moment, whose consumer owns these partitions."""
        return self._status.status(
            self._group,
            self._reader,
            owned,
            name=self._client_id,
            plan_topic=self._options.plan_topic,
            rejoins_asked=self._asking.asked_for_plans,
        )

    def close(self) -> None:
        """Let go of every connection."""
        self._status.leave()
        try:
            self._reader.close()
        finally:
            self._listener.close()

    def listen(self) -> bool:
        """Listen to the log, before the consumer joins; whether it may join by now.

        Takes half a second a request at most, and tries once a second at most. Where the log is
        not shown to work within two seconds, the consumer joins without it.

        Raises
        ------
        ConfigurationError
            The pin topic is compacted, or is missing and may not be created.
        """
        now = self._now()
        self._wanted = True
        self._status.join()
        if self._listening_since is None:
            self._listening_since = now
        self._listener.open()
        if self._must_skip:
            self._skip()
        if self._listener.shown:
            self._heard_through = self._listener.log
        elif self._silent_until <= now < self._listening_since + _LISTEN_S:
            return False
        else:
            self._heard_through = None
        self._listening_since = None
        return True

    def released(self) -> None:
        """Note that the consumer has given up what it owned, and will join anew.

        Whatever the log has told by now is of generations that are over.
        """
        self._end_attendance()
        self._records.clear()
        self._heard_through = self._listener.log if self._listener.shown else None

    def left(self, *, for_good: bool = False) -> None:
        """Note that the consumer has left its group, and may come back as another member.

        Meanwhile the group may end and begin anew, counting generations from 1: what the log holds
        by then is another life's.

        Parameters
        ----------
        for_good
            It comes back only if it subscribes again.
        """
        self._must_skip = True
        self._end_attendance()
        self._records.clear()
        self._heard_through = None
        if for_good:
            self._status.leave()

    def lost(self) -> None:
        """Note that the group has dropped this member, and that it joins anew by itself."""
        self.left()
        self._skip()
        self._heard_through = self._listener.log if self._listener.shown else None

    def begin(
        self, generation: int, member: str, topics: tuple[str, ...], given: Partitions
    ) -> None:
        """Begin the roll call of a generation: announce this member, where it hears the others.

        Parameters
        ----------
        generation, member
            As the consumer knows them, from one look.
        topics
            Its subscription, ascending.
        given
            What range gave it.
        """
        now = self._now()
        part = self._attendance
        again = part is not None and part.is_for == (generation, member)
        if part is not None and again and part.call.me.given == given:
            # Subscribed again, and given the same place: what was said and decided holds.
            self._phase = step(self._phase, Phase.UNDECIDED)
            return
        pins = self._listener.log
        identity = "" if pins is None else pins.identity
        me = Announcement(
            generation, member, self._client_id, topics, given, self._reader.state.seen, identity
        )
        part = Attendance(RollCall(me, self._counts), now)
        for record, epoch in self._records:
            part.call.hear(record, now, epoch=epoch)
        # Nobody else gives a member two places in one generation.
        why = BROKER_ASSIGNS if again else self._why_silent(part.call)
        if why is None and pins is not None:
            part.announce(pins, now)
        else:
            part.keep(why)
        # From here on it holds; before, whatever interrupts this, a new one begins anew.
        self._attendance, self._phase = part, step(self._phase, Phase.UNDECIDED)

    def is_for(self, generation: int, member: str) -> bool:
        """Whether the present roll call is that of this generation and member."""
        return self._attendance is not None and self._attendance.is_for == (generation, member)

    def step(self, wait_s: float) -> Verdict | None:
        """Read on, and pin when it is time; the verdict, once it is there, until `settle`.

        Parameters
        ----------
        wait_s
            How long to wait for the log's next record.
        """
        self._read(wait_s)
        part = self._attendance
        if part is None or not self.undecided:
            self._repeat_pin_if_due()
            return None
        verdict = self._verdict(part)
        if verdict is None:
            self._pin_if_due(part)
        return verdict

    def settle(self, verdict: Verdict) -> None:
        """Note that the consumer owns what a verdict says, and when to ask for a better one."""
        part = self._attendance
        if part is None or not self.undecided:
            return  # the application has left the group, when it was told what it owns
        call, where = part.call, f"Group {self._group}, generation {part.call.me.generation}"
        pin = call.pin
        if verdict.listed and pin is not None:
            note = AssignmentNote(pin.plan_version, pin.seen, pin.fallback_reason, decided=pin.seen)
            new_fallback = note.fallback_reason not in (None, self._logged_reason)
            # Of all members the one that drew the pin up warns, as a leader would.
            log.log(
                logging.WARNING if new_fallback and pin.member == call.me.member else logging.INFO,
                "%s, %d members: the assignment follows %s",
                where,
                len(pin.shares),
                note.followed(),
            )
            turn = sorted(pin.shares).index(call.me.member)
            self._repeat_pin_at = self._now() + REPEAT_PIN_S if turn == 0 else None
            seen, over = note.known(by_leader=True)
            self._asking.settle(seen, lapsed=over, turn_s=turn * _TURN_S)
            self._status.settle(note)
            self._logged_reason = note.fallback_reason
        else:
            self._settle_without(part, verdict, where)
        self._spent_s = 0.0
        self._phase = step(self._phase, Phase.SETTLED)

    def overtaken(self) -> None:
        """Note that the generation of the verdict is over: what comes is another one."""
        self._end_attendance()

    def rejoin_due(self) -> bool:
        """Whether the consumer should ask for a rebalance now; true until it has left."""
        part, now = self._attendance, self._now()
        if part is None or not self.settled:
            return False
        state = self._looked_at = self._reader.state
        told_last = self._listener.shown
        if (part.share is RangeShare.GIVEN_UP or told_last) and self._asking.to_take_part(now):
            log.info("Group %s: asking for a rebalance, to take part in it", self._group)
            return True
        over = lapsed(state, self._clock.utc())
        if told_last and self._asking.to_adopt(state, now, lapsed=over):
            log.info("Group %s: asking for a rebalance, to adopt a newer plan", self._group)
            return True
        return False

    def _read(self, wait_s: float) -> None:
        """Read on; or listen anew, which may miss what is said until the next join."""
        if not self._wanted:
            return
        if not self._listener.works and not self.undecided:  # else the verdict comes first
            self._records.clear()
            try:
                self._listener.open()
            except ConfigurationError as error:
                self._listener.doubt(str(error))
        heard_before = self._listener.shown
        for record, epoch in self._listener.read(wait_s):
            self._records.add(record, epoch)
            if self._attendance is not None:
                self._attendance.call.hear(record, self._now(), epoch=epoch)
        if self._listener.shown and not heard_before:
            self._ask_if_moved()
            self._asking.log_works(self._now())

    def _ask_if_moved(self) -> None:
        """Ask for a rebalance where the log is another one than what was decided stands in.

        It has grown, or was made anew: the next decision must be in one place for all members.
        Whoever comes first moves them all; meanwhile the others find the new place, too.
        """
        part = self._attendance
        within = self._phase is not Phase.OUTSIDE
        if within and part is not None and part.through not in {None, self._listener.log}:
            self._asking.log_moved(self._now())

    def _why_silent(self, call: RollCall) -> str | None:
        """Say why this member should not announce itself; None: it should."""
        pins = self._listener.log
        if pins is not None and self._listener.works and pins.broker_assigns(REQUEST_S):
            return BROKER_ASSIGNS
        if self._now() < self._silent_until:
            return "the roll call before this one was given up"
        if not self._records.whole:
            return "more was said than can be remembered"
        if pins is None or pins is not self._heard_through or not self._listener.shown:
            return self._listener.problem or "the log was not heard before this member joined"
        return "the others did not wait for this member" if call.over else None

    def _verdict(self, part: Attendance) -> Verdict | None:
        """Say what this member owns, once that is clear."""
        verdict = part.call.verdict()
        if verdict is None and part.share is RangeShare.CEDED and part.sent is not None:
            self._look_after(part, part.sent)
        if part.share is RangeShare.CEDED:
            return verdict
        given_up = part.share is RangeShare.GIVEN_UP
        return Verdict({} if given_up else part.call.me.given, listed=False)

    def _look_after(self, part: Attendance, sent: Sent) -> None:
        """Send an announcement again that was refused; give up what takes too long."""
        now, pins = self._now(), part.through
        same = pins is self._listener.log and self._listener.works
        if sent.refused is not None:
            if pins is None or not same or now >= part.began_at + AGAIN_S:
                part.keep(f"its announcement was refused: {sent.refused}")
                self._listener.doubt(sent.refused)
            elif now >= part.again_at:
                part.announce(pins, now)
            return
        longest_s = _CALL_S if self._reader.caught_up else self._options.read_timeout_s + _MORE_S
        why = part.trouble(now, same_log=same, longest_s=longest_s)
        if why is not None:
            self._give_up(part, why)
        if why == UNREAD:
            self._listener.give_up(why)

    def _give_up(self, part: Attendance, why: str) -> None:
        """Leave what was ceded to whoever owns it by now, if anybody; and say no more for a while.

        In the next generation range deals everything out anew.
        """
        self._silent_until = self._now() + 0.8 * self._asking.pause_s
        if self._listener.works:
            self._listener.doubt(why)
        part.give_up(why)

    def _pin_if_due(self, part: Attendance) -> None:
        call, pins, now = part.call, self._listener.log, self._now()
        waited_s = now - part.began_at
        due_at = call.pin_due_at()
        if pins is None or due_at is None or now < due_at:
            return
        if not part.counted:  # whose turn it is asks for all, and looks again
            part.counted = True
            call.expect(self._count_partitions(pins, call.me.topics))
            due_at = call.pin_due_at()
            if due_at is None or self._now() < due_at:
                return
        if not self._reader.caught_up and waited_s < self._options.read_timeout_s:
            return
        state = self._reader.state
        pins.append(draw_up(call.heard, state, now=self._clock.utc(), member=call.me.member))
        call.pinned(now)

    def _repeat_pin_if_due(self) -> None:
        """Write the pin that decided once more: of a generation the first one counts."""
        part, pins, now = self._attendance, self._listener.log, self._now()
        if self._repeat_pin_at is None or now < self._repeat_pin_at:
            return
        self._repeat_pin_at = now + REPEAT_PIN_S
        if part is None or part.call.pin is None or pins is None:
            return
        if pins is part.through:
            pins.append(part.call.pin)

    def _settle_without(self, part: Attendance, verdict: Verdict, where: str) -> None:
        """Take note of a verdict that did not count on this member."""
        if part.why == BROKER_ASSIGNS:
            log.info("%s: %s", where, part.why)
            self._status.settle(AssignmentNote(fallback_reason=part.why), "range")
            return
        reason = (
            verdict.problem
            or part.why
            or self._listener.problem
            or "the others did not wait for this member"
        )
        given_up = part.share is RangeShare.GIVEN_UP
        if given_up:
            self._asking.given_up(self._now())
        else:
            self._asking.left_out(self._now())
        kept = not given_up and verdict.share == part.call.me.given
        doing = "keeping what range gave" if kept else "owning nothing"
        log.warning("%s: %s: %s", where, doing, reason)
        note = AssignmentNote(fallback_reason=f"{doing}: {reason}")
        self._status.settle(note, "range" if kept else "nothing")
        self._repeat_pin_at = None

    def _end_attendance(self) -> None:
        part = self._attendance
        if part is not None and self.undecided:
            waited_s = self._now() - part.began_at
            self._spent_s += waited_s
            ceded = part.share is not RangeShare.KEPT
            unread = ceded and not part.call.announced and waited_s >= AGAIN_S
            if unread or self._spent_s >= _SPENT_S:
                self._give_up(part, "another rebalance came before an assignment was pinned")
        self._phase = step(self._phase, Phase.OUTSIDE)
        self._repeat_pin_at = None
        self._asking.unsettle()
        self._status.unsettle()

    def _skip(self) -> None:
        self._listener.skip_to_end()
        self._records.clear()
        self._must_skip = False

    def _count_partitions(self, pins: Log, topics: tuple[str, ...]) -> dict[str, int]:
        """Ask how many partitions there are; what is not answered in time stays as it was known."""
        deadline = self._now() + REQUEST_S
        for topic in topics:
            left_s = deadline - self._now()
            if left_s <= 0:
                break
            count = pins.partition_count(topic, left_s)
            if count is not None:
                self._counts[topic] = count
        # Where nobody knows, somebody may be missing.
        return {topic: self._counts.get(topic, MOST_PARTITIONS) for topic in topics}
