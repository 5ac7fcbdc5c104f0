"""One consumer's part in its group's roll calls, through every generation it lives in.

Belongs here: when to listen, announce, pin, trust the log, and ask for another rebalance. Does not:
the rules within one generation (`roll_call`), nor the consumer that joins and owns (`confluent`).

A member hears all of a generation only when it listened before it joined. One whose log failed
meanwhile has not announced itself, and keeps what range gave it: nobody deals that out.
"""

import logging
import random
import time
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from fairlead.followers.confluent_source import ConfluentSource
from fairlead.followers.follower import FollowerStatus, FollowOptions, new_cache
from fairlead.followers.members import AssignmentNote
from fairlead.followers.pin_listener import REQUEST_S, PinListener
from fairlead.followers.pins import PinLog
from fairlead.followers.plan_reader import PlanReader
from fairlead.followers.rejoin import RejoinSchedule
from fairlead.followers.roll_call import Here, Partitions, Pin, RollCall, Verdict, draw_up

log = logging.getLogger(__name__)

_TURN_S: Final = 4.0
_LEFT_OUT_S: Final = 5.0
_LONGEST_LEFT_OUT_S: Final = 300.0
_SLOW_S: Final = 5.0
_REMEMBERED: Final = 10_000
#: A pin is written again well before the topic's retention removes it, for the planner to read.
REPEAT_PIN_S: Final = 4 * 60 * 60.0
_UNDECIDED: Final = AssignmentNote(
    fallback_reason="a rebalance is under way, or no member has pinned an assignment yet"
)


class Caller:
    """Takes part in roll calls for one consumer. For one thread.

    Parameters
    ----------
    group, client_id
        The group id, and this consumer's name in plans.
    connection
        librdkafka's settings of how to reach the cluster.
    options
        How to follow plans.
    pin_topic
        The log through which members agree.
    """

    def __init__(
        self,
        group: str,
        client_id: str,
        connection: Mapping[str, Any],
        options: FollowOptions,
        pin_topic: str,
    ) -> None:
        self._group = group
        self._client_id = client_id
        self._options = options
        self._listener = PinListener(group, connection, pin_topic)
        self._records: deque[Here | Pin] = deque(maxlen=_REMEMBERED)
        self._counts: dict[str, int] = {}
        self._hears = False
        self._call: RollCall | None = None
        self._announced_to: PinLog | None = None
        self._active = self._decided = self._slow_logged = self._counted = False
        self._began_at = 0.0
        self._left_out = 0
        self._rejoin_at: float | None = None
        self._repeat_pin_at: float | None = None
        self._rng = random.Random()  # noqa: S311 - spreads load, guards nothing
        jitter_s = options.rejoin_jitter_s
        self._schedule = None if jitter_s is None else RejoinSchedule(jitter_s, self._rng)
        self._note = _UNDECIDED
        self._logged_reason: str | None = None
        self._rebalances = self._rejoins_asked = 0
        self._reader = PlanReader(
            group,
            open_source=lambda: ConfluentSource.open(group, connection, options.plan_topic),
            new_cache=partial(new_cache, group, options),
            on_tick=lambda: None,
        )
        self._reader.start()

    @property
    def undecided(self) -> bool:
        """Whether a roll call is under way."""
        return self._active and not self._decided

    def status(self) -> FollowerStatus:
        """Return what this follower does at the moment."""
        return FollowerStatus.of(
            self._group,
            self._reader,
            self._note,
            plan_topic=self._options.plan_topic,
            rebalances=self._rebalances,
            rejoins_asked=self._rejoins_asked,
        )

    def close(self) -> None:
        """Let go of every connection."""
        self._reader.close()
        self._listener.close()

    def listen(self) -> bool:
        """Listen to the log, before the consumer joins; whether that works.

        Takes half a second a request at most, and tries once a second at most.

        Raises
        ------
        ConfigurationError
            The pin topic is compacted, or is missing and may not be created.
        """
        if not self._listener.works:
            self._records.clear()
        self._hears = self._listener.open()
        return self._hears

    def released(self) -> None:
        """Note that the consumer has given up what it owned, and will join anew."""
        self._end_call()
        self._hears = self._listener.works

    def lost(self) -> None:
        """Note that the group has dropped this member: it will come back as another one.

        Meanwhile the group may end and begin anew, counting generations from 1: what the log holds
        by now is another life's.
        """
        self._end_call()
        self._listener.close()
        self._records.clear()
        self._hears = self._listener.open(at_once=True)

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
        self._active, self._decided, self._slow_logged = True, False, False
        self._began_at = time.monotonic()
        if self.is_for(generation, member):
            return  # subscribed again, and given the same place: what was said and decided holds
        state = self._reader.state
        me = Here(generation, member, self._client_id, topics, given, state.seen)
        self._call = call = RollCall(me, self._counts)
        self._announced_to, self._counted = None, False
        pins = self._listener.log
        if not self._hears or pins is None:
            return
        for record in self._records:
            call.hear(record, self._began_at)
        # The call has heard this generation's; of earlier ones nobody will ask.
        self._records = deque(
            (record for record in self._records if record.generation > generation),
            maxlen=_REMEMBERED,
        )
        if call.pin is None:
            self._announced_to = pins
            pins.append(me)

    def is_for(self, generation: int, member: str) -> bool:
        """Whether the present roll call is that of this generation and member."""
        me = self._call.me if self._call else None
        return me is not None and (me.generation, me.member) == (generation, member)

    def step(self, wait_s: float) -> Verdict | None:
        """Read on, and pin when it is time; the verdict, once it is there.

        Parameters
        ----------
        wait_s
            How long to wait for the log's next record.
        """
        self._read(wait_s)
        if self._call is None or not self.undecided:
            self._repeat_pin_if_due()
            return None
        verdict = self._verdict(self._call)
        if verdict is None:
            self._pin_if_due(self._call)
        else:
            self._decided = True
            self._settle(self._call, verdict)
        return verdict

    def rejoin_due(self) -> bool:
        """Whether the consumer should ask for a rebalance now; true once for each reason."""
        now = time.monotonic()
        if not self._listener.works or not self._decided:
            return False
        if self._rejoin_at is not None and now >= self._rejoin_at:
            self._rejoin_at = None
            log.info("Group %s: asking for a rebalance, to take part in it", self._group)
            return True
        seen = self._reader.state.seen
        if self._schedule is None or not self._schedule.due(seen=seen, now=now):
            return False
        self._rejoins_asked += 1
        log.info("Group %s: asking for a rebalance, to adopt a newer plan", self._group)
        return True

    def _read(self, wait_s: float) -> None:
        """Read on; or listen anew, which may miss what is said until the next join."""
        pins = self._listener.log
        if pins is not None and self._listener.works:
            for record in pins.read(wait_s):
                self._records.append(record)
                if self._call is not None:
                    self._call.hear(record, time.monotonic())
        elif not self.undecided:  # else the verdict comes first
            self._hears = False
            self._records.clear()
            self._listener.open()

    def _verdict(self, call: RollCall) -> Verdict | None:
        if call.pin is not None:
            return call.verdict()
        if self._announced_to is None:
            return Verdict(call.me.given, listed=False)
        if self._announced_to is not self._listener.log or not self._listener.works:
            # What is pinned, if anything, will not be known: what was ceded stays ceded.
            return Verdict({}, listed=False)
        return None

    def _pin_if_due(self, call: RollCall) -> None:
        pins, now = self._listener.log, time.monotonic()
        waited_s = now - self._began_at
        if waited_s > _SLOW_S and not self._slow_logged:
            self._slow_logged = True
            log.warning(
                "Group %s, generation %d: no assignment was pinned within %.0f s; owning nothing "
                "and trying on. Look for what keeps topic %s from being written and read",
                self._group,
                call.me.generation,
                waited_s,
                self._listener.topic,
            )
        due_at = call.pin_due_at()
        if pins is None or due_at is None or now < due_at:
            return
        if not self._counted:  # whose turn it is asks for all, and looks again
            self._counted = True
            call.expect(self._count_partitions(pins, call.me.topics))
            due_at = call.pin_due_at()
            if due_at is None or time.monotonic() < due_at:
                return
        if not self._reader.caught_up and waited_s < self._options.read_timeout_s:
            return
        state = self._reader.state
        pins.append(draw_up(call.heard, state, now=datetime.now(UTC), member=call.me.member))
        call.pinned(now)

    def _repeat_pin_if_due(self) -> None:
        """Write the pin that decided once more: of a generation the first one counts."""
        call, pins, now = self._call, self._listener.log, time.monotonic()
        if self._repeat_pin_at is None or now < self._repeat_pin_at:
            return
        self._repeat_pin_at = now + REPEAT_PIN_S
        if call is not None and call.pin is not None and pins is not None:
            pins.append(call.pin)

    def _settle(self, call: RollCall, verdict: Verdict) -> None:
        """Take note of a verdict, and of when to ask for a better one."""
        pin, where = call.pin, f"Group {self._group}, generation {call.me.generation}"
        self._rebalances += 1
        if verdict.listed and pin is not None:
            self._left_out = 0
            note = AssignmentNote(pin.plan_version, pin.seen, pin.fallback_reason)
            new_fallback = note.fallback_reason not in (None, self._logged_reason)
            # Of all members the one that drew the pin up warns, as a leader would.
            log.log(
                logging.WARNING if new_fallback and pin.member == call.me.member else logging.INFO,
                "%s, %d members: the assignment follows %s",
                where,
                len(pin.shares),
                note.followed(),
            )
            self._note, self._logged_reason = note, note.fallback_reason
            turn = sorted(pin.shares).index(call.me.member)
            if turn == 0:
                self._repeat_pin_at = time.monotonic() + REPEAT_PIN_S
            if self._schedule is not None:
                self._schedule.settle(pin.seen, turn_s=turn * _TURN_S)
            return
        reason = (
            verdict.problem or self._listener.problem or "the others did not wait for this member"
        )
        self._note = AssignmentNote(fallback_reason=reason)
        longest = min(_LEFT_OUT_S * 2**self._left_out, _LONGEST_LEFT_OUT_S)
        self._left_out = min(self._left_out + 1, 10)
        self._rejoin_at = time.monotonic() + self._rng.uniform(longest, 2 * longest)
        log.warning(
            "%s: %s: %s",
            where,
            "keeping what range gave" if verdict.share else "owning nothing",
            reason,
        )

    def _end_call(self) -> None:
        self._active = self._decided = False
        self._rejoin_at = None
        self._note = _UNDECIDED
        if self._schedule is not None:
            self._schedule.unsettle()

    def _count_partitions(self, pins: PinLog, topics: tuple[str, ...]) -> dict[str, int]:
        """Ask how many partitions there are; what is not answered in time stays as it was known."""
        deadline = time.monotonic() + REQUEST_S
        for topic in topics:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                break
            count = pins.partition_count(topic, left_s)
            if count is not None:
                self._counts[topic] = count
        return self._counts
