"""Publication: the approved bytes, and no others, to the plan topic, if they still fit the group.

Belongs here: what is verified before sending, and the order of sending and recording. Does not:
Kafka's producer (`fairlead.kafka.plan_topic`), the plan's states (`fairlead.store`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final, Protocol, Self

from assignors.verifier import violations
from fairlead.errors import GroupError, InvalidPlanError, TamperedPlanError
from fairlead.kafka.gateway import LiveGroup
from fairlead.plans.as_problem import assignment_of, planned, problem_of
from fairlead.plans.basis import differences_from
from fairlead.plans.document import PlanDocument
from fairlead.plans.record import Headers, Origin, plan_headers
from fairlead.plans.signing import Signer
from fairlead.settings import KafkaSettings
from fairlead.store.plans import PlanStore
from fairlead.store.records import StoredPlan
from fairlead.store.turns import Sent

#: Groups described at once: few enough that none has changed much when its turn comes.
AT_ONCE: Final = 100


class Sender(Protocol):
    """What publication needs of the plan topic."""

    @property
    def name(self) -> str:
        """The topic."""
        ...

    @property
    def origin(self) -> Origin:
        """The topic, with the ids of the cluster and of the topic in it."""
        ...

    def publish(self, group: str, value: bytes, headers: Headers) -> tuple[int, int]:
        """Send a record, and wait for all replicas; returns partition and offset."""
        ...


@dataclass(frozen=True)
class Terms:
    """What goes for every plan that is sent.

    Parameters
    ----------
    lease
        How long consumers follow a plan that they are not told of again.
    signer
        Signs the records; None: they are not signed.
    """

    lease: timedelta
    signer: Signer | None = None

    @classmethod
    def of(cls, settings: KafkaSettings) -> Self:
        """Return what the settings say."""
        return cls(settings.lease, settings.signer)

    def headers(
        self, plan: StoredPlan, origin: Origin, *, epoch: int, lease_until: datetime
    ) -> Headers:
        """Return the headers that a plan's bytes are sent with."""
        return plan_headers(
            plan.document,
            group=plan.group,
            version=plan.version,
            origin=origin,
            epoch=epoch,
            lease_until=lease_until,
            signer=self.signer,
        )


@dataclass(frozen=True)
class Published:
    """What became of a group's approved plan.

    Parameters
    ----------
    group, version
        The plan.
    position
        Partition and offset in the plan topic; None: it was refused as stale, or not sent.
    reason
        Why it was refused, or where it is.
    """

    group: str
    version: int
    position: tuple[int, int] | None
    reason: str


def publish_all(
    store: PlanStore,
    waiting: Sequence[StoredPlan],
    *,
    live: Callable[[Iterable[str]], Mapping[str, LiveGroup | GroupError]],
    sender: Sender,
    terms: Terms,
) -> Iterator[Published]:
    """Publish the approved plans of groups; `AT_ONCE` groups are described together just before.

    What is wrong with one group is why its plan is not published, and concerns no other.

    Parameters
    ----------
    waiting
        Approved plans, one a group: `publish` looks again at what waits when its turn comes.
    live
        Describes groups as they are now.
    store, sender, terms
        As for `publish`.

    Raises
    ------
    KafkaUnavailableError
        Kafka does not answer; what is not published yet stays approved.
    """
    for first in range(0, len(waiting), AT_ONCE):
        some = waiting[first : first + AT_ONCE]
        found = live(plan.group for plan in some)
        for plan in some:
            try:
                published = publish(
                    store,
                    plan.group,
                    live=partial(_present, found),
                    sender=sender,
                    now=datetime.now(UTC),
                    terms=terms,
                )
            except (GroupError, InvalidPlanError, TamperedPlanError) as error:
                yield Published(plan.group, plan.version, None, str(error))
            else:
                if published is not None:
                    yield published


def _present(found: Mapping[str, LiveGroup | GroupError], group: str) -> LiveGroup:
    live = found[group]
    if isinstance(live, GroupError):
        raise live
    return live


def publish(
    store: PlanStore,
    group: str,
    *,
    live: Callable[[str], LiveGroup],
    sender: Sender,
    now: datetime,
    terms: Terms,
) -> Published | None:
    """Publish a group's approved plan, if one waits.

    Everything is verified again, whatever ran before: the bytes are those that were approved, they
    give every partition exactly one subscribed owner, the plan has not expired, and the group still
    is what the plan was made for. A crash after the send
    and before the record of it leaves the plan approved; the next call sends the same bytes again,
    which followers recognise by their version.

    Parameters
    ----------
    store
        The plan store; the group stays locked meanwhile.
    group
        The consumer group.
    live
        Describes the group as it is now.
    sender
        The plan topic.
    now
        What the plan's expiry is held against, and when its lease begins.
    terms
        How long it holds, and what signs it.

    Returns
    -------
    None where no approved plan waits.

    Raises
    ------
    TamperedPlanError
        The stored bytes are not the approved ones. Nothing is sent, the plan stays as it is.
    InvalidPlanError
        The plan breaks an invariant of assignments. Nothing is sent, the plan stays as it is.
    KafkaUnavailableError, GroupError
        Kafka does not answer; the plan stays approved, and the same call may succeed later.
    """
    with store.publication(group) as turn:
        if turn.plan is None:
            return None
        plan = turn.plan.verify()
        _verify_assignment(plan)
        late = turn.plan.expired(now)
        different = ["it has expired"] if late else differences_from(plan, live(group))
        if refusal := "; ".join(different):
            turn.mark_stale(reason=refusal)
            return Published(group, plan.version, None, refusal)
        epoch, until = turn.epoch(), now + terms.lease
        headers = terms.headers(turn.plan, sender.origin, epoch=epoch, lease_until=until)
        partition, offset = sender.publish(group, turn.plan.document, headers)
        turn.mark_published(Sent(epoch, until, sender.name, partition, offset))
    return Published(
        group, plan.version, (partition, offset), f"{sender.name}-{partition} at offset {offset}"
    )


def _verify_assignment(plan: PlanDocument) -> None:
    problem = problem_of(plan, planned(plan))
    broken = violations(problem, assignment_of(problem, planned(plan)))
    if broken:
        raise InvalidPlanError(f"group {plan.group}: version {plan.version}: {'; '.join(broken)}")
