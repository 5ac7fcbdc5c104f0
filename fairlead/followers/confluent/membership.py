"""One consumer's place in its group: joins, takes part in roll calls, owns what they decide.

Belongs here: what happens in which order, and that an exception out of any line of it is healed at
the next call. Does not: a client library's types (`consumer`), nor how members agree
(`participant`).

Each step first notes what might become true and then makes it so. A call that was interrupted
leaves `_torn` behind; the next one looks whether all is as it should be, and joins anew where it is
not: in a new generation nothing of the old one counts.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Final, Literal, Protocol, TypeVar

from fairlead.errors import ConfigurationError
from fairlead.followers.confluent.participant import Participant
from fairlead.followers.confluent.roll_call import Verdict
from fairlead.followers.core.clock import Clock
from fairlead.wire.partitions import by_topic
from fairlead.wire.pins import Partitions

log = logging.getLogger(__name__)

Pair = tuple[str, int]
Event = Literal["assign", "revoke", "lost"]
Fetched = TypeVar("Fetched")

#: The longest that a call to the client may keep a roll call waiting.
_SLICE_S: Final = 0.02
_READ_S: Final = 0.02
#: How often this member steps while it owns what was decided, and a time to ask for more is drawn.
_SETTLED_S: Final = 0.2
#: How often it looks after the log while there is no news.
_AT_REST_S: Final = 3.0
#: The client counts in milliseconds: what is left of a time-out below this is over.
_SHORTEST_S: Final = 0.006
#: How often subscribing may wait so long for the log to show that it works.
_READS_TO_JOIN: Final = 25


class GroupClient(Protocol):
    """A consumer of the group, as its client library has it."""

    def identity(self) -> tuple[int, str]:
        """Return the generation and this member's id, from one look; (-1, "") outside a group."""

    def subscribe(self, topics: Sequence[str]) -> None:
        """Join the group, or join it anew."""

    def unsubscribe(self) -> None:
        """Leave the group."""

    def own(self, share: Sequence[Pair]) -> None:
        """Fetch these partitions and no others."""

    def disown(self) -> None:
        """Fetch nothing."""

    def owned(self) -> list[Pair] | None:
        """Return what is fetched; None: a client that is being closed does not say any more."""

    def tell(self, event: Event, share: Sequence[Pair]) -> None:
        """Call what the application wants to be called."""


class GroupMembership:
    """Takes one consumer through its life in the group. For one thread.

    Parameters
    ----------
    client
        The consumer.
    participant
        Its part in roll calls.
    clock
        What time it is.
    """

    def __init__(self, client: GroupClient, participant: Participant, clock: Clock) -> None:
        #: Whether the application, in a callback, has said itself what to fetch.
        self.touched = False
        self._client = client
        self._participant = participant
        self._now = clock.monotonic
        self._topics: tuple[str, ...] = ()
        self._joined = self._owning = self._torn = False
        self._share: list[Pair] | None = []
        self._given: Partitions | None = None
        self._next_step_at, self._slice_s = float("-inf"), _SLICE_S

    def subscribe(self, topics: Sequence[str]) -> None:
        """Subscribe to these topics; joins here, or in a later `fetch`, once the log is heard."""
        self._torn = True
        self._topics = tuple(sorted(set(topics)))
        self._joined = False
        self._next_step_at = float("-inf")
        self._join()
        for _ in range(_READS_TO_JOIN):  # the log mostly shows at once that it works
            if self._joined or not self._participant.awaits_log:
                break
            self._participant.step(_READ_S)
            self._join()
        self._torn = False

    def unsubscribe(self) -> None:
        """Leave the group."""
        self._torn = True
        self._topics = ()
        self._leave()
        self._torn = False

    def fetch(
        self,
        fetch: Callable[[float], Fetched],
        timeout: float | None,
        *,
        nothing: Fetched,
    ) -> Fetched:
        """Fetch in slices, and take part in roll calls between them.

        Parameters
        ----------
        fetch
            Waits so long at most, and no longer once a rebalance has begun or there is news of a
            plan.
        timeout
            How long all may take; None or below 0: as long as it takes.
        nothing
            What `fetch` returns where there is nothing.
        """
        now = self._now()
        deadline = float("inf") if timeout is None or timeout < 0 else now + timeout
        while True:
            if self._torn:
                self._heal()
            self._torn = True
            if now >= self._next_step_at or self._participant.news:
                self._step(min(_READ_S, max(0.0, deadline - now)))
            left_s = max(0.0, deadline - self._now())
            fetched = fetch(min(self._slice_s, left_s))
            self._torn = False
            now = self._now()
            if fetched != nothing or deadline - now < _SHORTEST_S:
                return fetched

    def assigned(self, partitions: Sequence[Pair]) -> None:
        """Begin the roll call of a new generation, owning nothing; called by the client."""
        # Before anything else: where a callback fails, librdkafka's binding assigns range's share.
        self._client.own([])
        given = by_topic(partitions)
        self._owning, self._share = False, []
        self._given = {topic: tuple(numbers) for topic, numbers in given.items()}
        self._next_step_at = float("-inf")
        try:
            self._begin()
        except Exception:
            log.exception("A roll call could not begin; trying again in poll")

    def revoked(self) -> None:
        """Give up what is owned, before the consumer joins anew; called by the client."""
        self._release("revoke")

    def lost(self) -> None:
        """Give up what others may own by now; called by the client."""
        self._release("lost")

    def _step(self, wait_s: float) -> None:
        """Do what is due: join, listen, pin, own, ask for a rebalance."""
        if self._topics and not self._joined:
            self._join()
        if self._given is not None:
            self._begin()
        verdict = self._participant.step(wait_s if self._is_urgent else 0.0)
        if verdict is not None:
            self._own(verdict)
        if self._joined and self._participant.rejoin_due():
            # Subscribing again would give this member its old place back, without a rebalance.
            self._leave()
            self._join()
        self._slice_s = _SLICE_S
        if self._participant.settled:
            self._slice_s = _AT_REST_S if self._participant.at_rest else _SETTLED_S
        self._next_step_at = self._now() + self._slice_s
        if self._is_urgent:
            self._slice_s, self._next_step_at = 0.0, float("-inf")

    @property
    def _is_urgent(self) -> bool:
        """Whether the group, or this consumer, to join, waits for what the log says next."""
        return self._participant.undecided or (not self._joined and self._participant.awaits_log)

    def _join(self) -> None:
        try:
            listens = self._participant.listen()
        except ConfigurationError:
            self._torn = False
            raise
        if listens:
            self._client.subscribe(self._topics)
            self._joined = True

    def _leave(self) -> None:
        self._given = None
        self._next_step_at = float("-inf")
        self._participant.left(for_good=not self._topics)
        self._client.unsubscribe()
        self._joined = False

    def _heal(self) -> None:
        """Put right what an exception has left half done."""
        if not self._is_whole():
            log.warning("A call was interrupted in the middle of a rebalance; joining anew")
            self._leave()
        self._torn = False

    def _is_whole(self) -> bool:
        if not self._topics:
            return not self._joined
        settled = self._joined and self._given is None and self._participant.settled
        return (
            settled
            and self._participant.is_for(*self._client.identity())
            and (self._share is None or sorted(self._client.owned() or ()) == self._share)
        )

    def _own(self, verdict: Verdict) -> None:
        """Own a verdict's share, if the generation it is for still is this one."""
        if verdict.problem is not None:
            self.unsubscribe()
            self._torn = False
            raise ConfigurationError(f"PlanConsumer: {verdict.problem}")
        if not self._participant.is_for(*self._client.identity()):
            self._participant.overtaken()
            return
        share = sorted((topic, n) for topic, numbers in verdict.share.items() for n in numbers)
        self._owning, self._share = True, share
        error = self._tell("assign", share)
        if self.touched:
            self._share = None
        else:
            self._client.own(share)
        self._participant.settle(verdict)
        self._raise(error)

    def _begin(self) -> None:
        generation, member = self._client.identity()
        if generation >= 0 and member and self._given is not None:
            self._participant.begin(generation, member, self._topics, self._given)
            self._given = None

    def _release(self, event: Literal["revoke", "lost"]) -> None:
        """Give up what is really owned; the client names range's share."""
        self._given = None
        self._next_step_at = float("-inf")
        self.touched = False
        error = None
        if self._owning:
            owned = self._client.owned()
            error = self._tell(event, self._share or [] if owned is None else owned)
        self._participant.released()
        if not self.touched:
            self._client.disown()
        self._owning, self._share = False, []
        if event == "lost":
            self._participant.lost()
        self._raise(error)

    def _tell(self, event: Event, share: Sequence[Pair]) -> BaseException | None:
        """Call the application; what it raises is raised once this membership is whole."""
        self.touched = False
        try:
            self._client.tell(event, share)
        except BaseException as error:  # noqa: BLE001 - handed back
            return error
        return None

    def _raise(self, error: BaseException | None) -> None:
        if error is not None:
            self._torn = False
            raise error
