"""Reconciling: make the plan topic in Kafka agree with the database, by sending records.

Belongs here: reading topic and database, and carrying out each group's next step, in an order that
is safe even if a process dies or freezes between two steps. Belongs elsewhere: choosing the step
(`fairlead.domain.reconciliation`), the transactions (`fairlead.store.outbox`), Kafka's producer
(`fairlead.kafka.plan_channel`).

A publisher is a process that sends plans. For each partition of the plan topic, it locks a row in
Postgres. While it has the lock, it fences earlier publishers: Kafka then rejects their records.
With the same database session, it commits the records that it will send, as entries of the outbox.
If a publisher freezes before this commit, it loses the lock and cannot commit. If it freezes after
the commit, another publisher fences it, so it cannot send. Its attempt to store that a record was
not sent fails, too, because the other publisher may have sent this record in the meantime.

==================  ===================  ==================================  =====================
step                state of the plan    done by                             after a crash
==================  ===================  ==================================  =====================
`PublishRequest`    approved             `_Pass`, after verifying            still approved
`OutboxEntry`       sending              `Turn.add`: Postgres commits        sent, or stale
record in topic     sending              `PlanChannel.send`: Kafka commits   published
`PublishedRecord`   published            `Outbox.confirm`: Postgres commits
(Kafka rejects      refused              `Outbox.refuse`: Postgres commits
the record)
==================  ===================  ==================================  =====================

A withdrawal has the same steps, but meanwhile the plan's state is `published`, and then
`withdrawn`. If a record is sent again, no entry is stored, because nothing is lost if this fails.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from assignors.verifier import violations
from fairlead.domain import reconciliation
from fairlead.domain.as_problem import assignment_of, planned, problem_of
from fairlead.domain.basis import differences_from
from fairlead.domain.groups import LiveGroup
from fairlead.domain.reconciliation import Action, Lease, NextStep, Objection, Situation
from fairlead.domain.records import StoredPlan
from fairlead.errors import (
    FairleadError,
    GroupAbsentError,
    GroupError,
    GroupUnsettledError,
    PlanStateError,
    StalePlanError,
)
from fairlead.kafka.compacted_topic import Record
from fairlead.kafka.plan_channel import PlanChannel
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.store.attempts import Attempt, record_attempts
from fairlead.store.freezes import Freeze, freeze_on, read_freezes
from fairlead.store.outbox import PartitionLock
from fairlead.store.outbox_entries import OutboxEntry, PublishRequest, Standing
from fairlead.store.plans import PlanStore
from fairlead.store.published_records import PublishedRecord
from fairlead.wire.document import PlanDocument
from fairlead.wire.record import Kind
from fairlead.workflows.delivery import PublishOptions, accepted
from fairlead.workflows.differences import by_partition, compare

#: Maximum number of groups that are described before their records are sent. With more groups, the
#: descriptions could be out of date when the records are sent.
AT_ONCE: Final = 100
#: Maximum steps of a group in a pass: finish an unfinished record, send a plan, check that no step
#: is left.
STEPS: Final = 3
#: Time from a failed attempt to send a plan to the next attempt: `SOON` after a temporary error,
#: `LATER` after other errors.
SOON: Final = timedelta(seconds=30)
LATER: Final = timedelta(minutes=10)
_HELD: Final = "another operation on this plan is in progress, or it was frozen just now"
_HANGS: Final = (
    "; consumers cannot read it yet: another producer has left a transaction open, which hides "
    "the partition from offset "
)
#: Describes groups as they are now.
Live = Callable[[Iterable[str]], Mapping[str, LiveGroup | GroupError]]
_Described = LiveGroup | GroupError | None


@dataclass(frozen=True)
class StepResult:
    """The result of one step of a reconciling pass, for one group.

    Parameters
    ----------
    group, version
        The plan.
    action
        What was done, or could not be done.
    reason
        Why nothing was sent, why a record was sent again, or why a plan was withdrawn; else empty.
    record
        The record in the plan topic; None: nothing was sent.
    kind
        The record's kind: a plan or a withdrawal.
    passing
        If nothing was sent: whether the reason is temporary.
    hidden_from
        If consumers cannot read the record yet, because another producer's transaction is open: the
        first offset that this transaction hides. None: consumers can read the record. After a
        hidden record, the pass ends for the group: a further step would not find the record in the
        topic, and would send it again.
    """

    group: str
    version: int
    action: Action
    reason: str
    record: PublishedRecord | None = None
    kind: Kind = "plan"
    passing: bool = False
    hidden_from: int | None = None

    @property
    def place(self) -> str:
        """Position of the record, in words; empty if nothing was sent."""
        if self.record is None:
            return ""
        place = self.record.place
        return place if self.hidden_from is None else f"{place}{_HANGS}{self.hidden_from}"

    @property
    def summary(self) -> str:
        """The action, with its reason or the position of the record."""
        return f"{self.action.name.lower()}: {self.reason or self.place}"

    @property
    def published(self) -> bool:
        """Whether a new version was published."""
        return self._new and self.kind == "plan"

    @property
    def withdrawn(self) -> bool:
        """Whether a plan was withdrawn."""
        return self._new and self.kind == "withdrawn"

    @property
    def waits(self) -> bool:
        """Whether an approved plan, or the renewal of a lease, waits for a later pass."""
        unsent = self.action is Action.RENEW and self.record is None
        return unsent or self.action is Action.ALARM

    @property
    def refused(self) -> bool:
        """Whether a new version will never be sent: it was discarded, or Kafka rejected it."""
        return self.action in {Action.SEND, Action.DISCARD} and self.record is None

    @property
    def _new(self) -> bool:
        return self.record is not None and self.action is not Action.RENEW


def reconcile(
    plans: PlanStore,
    groups: Collection[str] | None,
    *,
    live: Live,
    topic: PlanTopic,
    options: PublishOptions,
    now: datetime,
    withdrawals: Iterable[PublishRequest] = (),
) -> Iterator[StepResult]:
    """Carry out the next steps of groups until no step is left; yield the result of each step.

    Before a plan is sent, everything is verified again: the bytes are those that were approved,
    they give every partition exactly one subscribed owner, the plan has not expired, and the
    group's members, subscriptions and partitions are those for which the plan was made. An error of
    one group does not affect other groups. If a plan has to wait, the reason is stored with the
    plan.

    Parameters
    ----------
    plans
        The store.
    groups
        Groups to reconcile; None: all.
    live
        Describes groups as they are now.
    topic, options
        The plan topic, and options of its records.
    now
        Time of the pass: for expiry, and the start of leases; time-zone-aware.
    withdrawals
        Published versions to withdraw.

    Raises
    ------
    ConfigurationError
        The topic cannot be read or written.
    KafkaUnavailableError
        Kafka does not answer, or another publisher has fenced this one.
    StoreUnavailableError
        The database does not answer, or another publisher has locked the partition. The next pass
        continues where this pass ended.
    """
    wanted = {request.group: request for request in withdrawals}
    current_pass = _Pass(plans, topic, options, live, now, wanted)
    waiting: dict[str, Attempt] = {}
    for _ in range(STEPS):
        changed = set()
        for result in current_pass.step(groups):
            if result.waits:
                waiting[result.group] = _attempt(result)
            elif result.action is not Action.RENEW and result.hidden_from is None:
                changed.add(result.group)
            yield result
        groups = sorted(changed)
        if not groups:
            break
    record_attempts(plans.engine, list(waiting.values()))


def withdraw(
    plans: PlanStore,
    group: str,
    *,
    topic: PlanTopic,
    options: PublishOptions,
    reason: str,
    actor: str | None = None,
) -> StepResult:
    """Withdraw a group's published plan: its consumers return to their fallback assignor.

    Plans of the group that wait for approval or publication end as well. The next planning run may
    propose another plan: exclude the group from discovery to prevent that.

    Parameters
    ----------
    reason
        The reason; stored in the plan's history.
    actor
        The person who requests the withdrawal; None: the database's session user.

    Raises
    ------
    PlanStateError
        The group has no published plan, or an earlier record is still pending.
    StalePlanError
        Kafka rejects the record.
    KafkaUnavailableError
        Kafka does not answer; the plan stays published until the next pass.
    """
    plan = plans.published(group)
    if plan is None:
        raise PlanStateError(f"group {group} has no published plan to withdraw")
    wanted = [PublishRequest(group, plan.version, "withdrawn", reason=reason, actor=actor)]
    unknown = {group: GroupError("Kafka has not described the group")}
    now = datetime.now(UTC)
    for result in reconcile(
        plans,
        [group],
        live=lambda _: unknown,
        topic=topic,
        options=options,
        now=now,
        withdrawals=wanted,
    ):
        if result.withdrawn:
            return result
        if result.action is Action.WITHDRAW:
            raise StalePlanError(f"group {group}: version {result.version}: {result.reason}")
    raise PlanStateError(
        f"group {group}: another version is being published or withdrawn; the planner finishes it"
    )


@dataclass(frozen=True)
class _Pass:
    """One reconciliation of several groups."""

    plans: PlanStore
    topic: PlanTopic
    options: PublishOptions
    live: Live
    now: datetime
    withdrawals: Mapping[str, PublishRequest]

    def step(self, groups: Collection[str] | None) -> Iterator[StepResult]:
        """Carry out the next step of each group."""
        standing = self.plans.outbox().standing(groups)
        freezes = (
            read_freezes(self.plans.engine) if any(group.approved for group in standing) else []
        )
        for partition, gathered, newest in by_partition(self.topic, standing):
            for first in range(0, len(gathered), AT_ONCE):
                batch = gathered[first : first + AT_ONCE]
                yield from self._carry_out(partition, batch, newest, freezes)

    def _carry_out(
        self,
        partition: int,
        groups: Sequence[Standing],
        newest: Mapping[str, Record],
        freezes: Sequence[Freeze],
    ) -> Iterator[StepResult]:
        """Decide on the next steps of a partition's groups, and send all their records together."""
        names = [group.group for group in groups if self._depends_on_members(group, freezes)]
        described = self.live(names) if names else {}
        requests: list[PublishRequest] = []
        for group in groups:
            if group.entry is None:
                known = newest.get(group.group), described.get(group.group)
                result, request = self._decide(group, *known, freezes)
                if result is not None:
                    yield result
                if request is not None:
                    requests.append(request)
        unfinished = [group.group for group in groups if group.entry is not None]
        if not requests and not unfinished:
            return
        with self.plans.outbox().turn(self.topic.name, partition) as turn:
            channel = self.topic.open(partition)
            entries = turn.add(requests)
        with channel:  # since `open`, Kafka rejects the records of other publishers
            if unfinished:
                entries += yield from self._finish(unfinished, described, turn.lock)
            if entries:
                yield from self._send(entries, channel, turn.lock)
        left_out = {request.group for request in requests} - {entry.group for entry in entries}
        if left_out:
            for plan in self.plans.in_state("approved", groups=left_out):
                yield _alarm(plan, Objection(_HELD, passing=True))

    def _depends_on_members(self, group: Standing, freezes: Sequence[Freeze]) -> bool:
        """Whether the group must be described, because its next step depends on its members."""
        if group.entry is not None and group.entry.kind == "plan":
            return True
        waits = group.approved is not None and freeze_on(group.approved, freezes) is None
        return waits or self._lease(group) is not Lease.HOLDS

    def _decide(
        self,
        group: Standing,
        record: Record | None,
        described: _Described,
        freezes: Sequence[Freeze],
    ) -> tuple[StepResult | None, PublishRequest | None]:
        """Decide on the next step of a group that has no pending record.

        Returns
        -------
        Two values: why a plan is not sent (or None), and the record to send (or None). If the
        approved plan has to wait while the lease of the published plan is renewed, neither is None.
        """
        approved, followed, lease = group.approved, group.followed, self._lease(group)
        difference = compare(group, record, self.topic.origin, self.options.verifier())
        objection = None
        if approved is not None:
            freeze = freeze_on(approved, freezes)
            objection = Objection(str(freeze)) if freeze else self._objection(approved, described)
        withdrawal = self.withdrawals.get(group.group)
        if withdrawal and (followed is None or followed.version != withdrawal.version):
            withdrawal = None
        published = followed is not None and followed.state == "published"
        renewed = followed if difference or lease is not Lease.HOLDS else None
        step = reconciliation.decide(
            Situation(
                approved=approved is not None,
                objection=objection,
                followed=None if followed is None else "plan" if published else "withdrawn",
                difference=difference.what if difference else "",
                damage=_read(renewed)[1] if renewed is not None and published else "",
                lease=lease,
                exists=not isinstance(described, GroupAbsentError),
                withdrawal=withdrawal.reason if withdrawal else "",
            )
        )
        result = None
        if approved is not None and objection is not None:
            result = self._not_sent(approved, objection, step)
        elif followed is not None and step.action is Action.ALARM:
            result = _alarm(followed, Objection(step.reason))
        plan = approved if step.action is Action.SEND else followed
        if plan is None or step.action not in {Action.SEND, Action.RENEW, Action.WITHDRAW}:
            return result, None
        withdrawn = step.action is Action.WITHDRAW or plan.state == "withdrawn"
        return result, PublishRequest(
            plan.group,
            plan.version,
            "withdrawn" if withdrawn else "plan",
            lease_until=None if withdrawn else self.now + self.options.lease,
            beyond=difference.beyond if difference else None,
            reason=step.reason,
            actor=withdrawal.actor if withdrawal else None,
        )

    def _not_sent(
        self, approved: StoredPlan, objection: Objection, step: NextStep
    ) -> StepResult | None:
        """Return why an approved plan waits; end the plan if the objection is permanent."""
        if not objection.ends:
            return _alarm(approved, objection)
        if step.action is Action.DISCARD and self.plans.mark_stale(approved, reason=step.reason):
            return _result(approved, step.action, step.reason)
        return None

    def _finish(
        self,
        groups: Sequence[str],
        described: Mapping[str, LiveGroup | GroupError],
        lock: PartitionLock,
    ) -> Generator[StepResult, None, list[OutboxEntry]]:
        """Finish the outbox entries of an earlier pass; return the entries that must be sent.

        If an entry's record is in the topic, the entry is confirmed, even if a newer record has
        replaced this record, because consumers may have read it. If the group no longer fits the
        entry's plan, the entry is discarded.
        """
        outbox = self.plans.outbox()
        outstanding = outbox.outstanding(groups)  # read again: others may have finished entries
        arrived = self._arrived(outstanding, lock)
        outbox.confirm(arrived)
        discarded: dict[str, tuple[OutboxEntry, str]] = {}
        missing: list[OutboxEntry] = []
        for entry in outstanding:
            sent, plan, objection = arrived.get(entry.group), entry.plan, None
            if sent is None and entry.kind == "plan":
                objection = self._objection(plan, described.get(entry.group))
            step = reconciliation.decide(
                Situation(on_its_way=entry.kind, arrived=sent is not None, objection=objection)
            )
            if sent is not None:
                yield _sent(entry, step.action, sent[1])
            elif step.action is Action.DISCARD:
                discarded[entry.group] = (entry, step.reason)
            elif objection is not None:
                yield _alarm(plan, objection)
            else:
                until = None if entry.kind == "withdrawn" else self.now + self.options.lease
                missing.append(replace(entry, lease_until=until))
        outbox.discard(discarded, lock)
        for entry, reason in discarded.values():
            yield _result(entry.plan, Action.DISCARD, reason)
        return missing

    def _arrived(
        self, entries: Sequence[OutboxEntry], lock: PartitionLock
    ) -> dict[str, tuple[OutboxEntry, PublishedRecord]]:
        """Return the entries whose records are in the topic, by group, each with its record."""
        wanted = {entry.group: entry for entry in entries}
        leases: dict[str, datetime | None] = {}

        def is_the_entry(record: Record) -> bool:
            entry = wanted[record.group]
            read = accepted(record, self.topic.origin, self.options.verifier())
            rank = (entry.epoch, entry.plan.version, entry.kind == "withdrawn")
            if read is None or read.identity.rank != rank:
                return False
            leases[record.group] = read.lease_until
            return True

        newest = self.topic.newest(lock.partition, list(wanted), is_the_entry) if wanted else {}
        return {
            group: (wanted[group], _record(wanted[group], lock, leases[group], record.position[1]))
            for group, record in newest.items()
        }

    def _send(
        self, entries: Sequence[OutboxEntry], channel: PlanChannel, lock: PartitionLock
    ) -> Iterator[StepResult]:
        """Send the records of entries, and store which of them Kafka accepted."""
        topic, outbox = self.topic, self.plans.outbox()
        answers = channel.send([self.options.outgoing(entry, topic.origin) for entry in entries])
        sent: dict[str, tuple[OutboxEntry, PublishedRecord]] = {}
        refused: dict[str, tuple[OutboxEntry, str]] = {}
        for entry in entries:
            answer = answers[entry.group]
            if isinstance(answer, str):
                why = f"the topic {topic.name} does not accept the record: {answer}"
                refused[entry.group] = (entry, why)
            else:
                sent[entry.group] = (entry, _record(entry, lock, entry.lease_until, answer))
        outbox.confirm(sent)
        outbox.refuse(refused, lock)
        last = max((at.record_offset for _, at in sent.values()), default=None)
        since = None if last is None else topic.held_up(lock.partition, last)
        for entry, at in sent.values():
            yield replace(_sent(entry, _action(entry), at), hidden_from=since)
        for entry, reason in refused.values():
            yield _result(entry.plan, _action(entry), reason)

    def _lease(self, group: Standing) -> Lease:
        until = None if group.record is None else group.record.lease_until
        if until is None or group.followed is None or group.followed.state != "published":
            return Lease.HOLDS
        if until <= self.now:
            return Lease.OVER
        lease = self.options.lease
        due = until <= self.now + lease - reconciliation.renewed_after(lease)
        return Lease.DUE if due else Lease.HOLDS

    def _objection(self, plan: StoredPlan, described: _Described) -> Objection | None:
        """Return why a plan must not be sent; None if it can be sent.

        If the stored bytes are damaged, a plan in the state `sending` ends, because it would block
        the group's other plans. An approved plan stays, so that a person can inspect it.
        """
        document, damage = _read(plan)
        if document is None:
            return Objection(damage, ends=plan.state == "sending")
        if plan.expired(self.now):
            return Objection("it has expired", ends=True)
        if isinstance(described, LiveGroup):
            differing = "; ".join(differences_from(document, described))
            return Objection(differing, ends=True) if differing else None
        error = described or GroupError("Kafka has not described the group")
        if isinstance(error, GroupAbsentError):
            return Objection("the group does not exist any more", ends=True)
        return Objection(str(error), passing=isinstance(error, GroupUnsettledError))


def _read(plan: StoredPlan) -> tuple[PlanDocument | None, str]:
    """Return a plan's document if it may be sent; else None and the reason."""
    try:
        document = plan.verify()
    except FairleadError as error:
        return None, str(error)
    problem = problem_of(document, planned(document))
    broken = violations(problem, assignment_of(problem, planned(document)))
    if broken:
        return None, f"group {plan.group}: version {plan.version}: {'; '.join(broken)}"
    return document, ""


def _action(entry: OutboxEntry) -> Action:
    if entry.again:
        return Action.RENEW
    return Action.WITHDRAW if entry.kind == "withdrawn" else Action.SEND


def _record(
    entry: OutboxEntry, lock: PartitionLock, until: datetime | None, offset: int
) -> PublishedRecord:
    return PublishedRecord(entry.epoch, until, lock.topic, lock.partition, offset)


def _result(plan: StoredPlan, action: Action, reason: str) -> StepResult:
    return StepResult(plan.group, plan.version, action, reason)


def _sent(entry: OutboxEntry, action: Action, at: PublishedRecord) -> StepResult:
    return replace(_result(entry.plan, action, entry.reason), record=at, kind=entry.kind)


def _alarm(plan: StoredPlan, objection: Objection) -> StepResult:
    result = _result(plan, Action.ALARM, objection.reason)
    return replace(result, passing=objection.passing)


def _attempt(result: StepResult) -> Attempt:
    at = datetime.now(UTC)
    again_at = at + (SOON if result.passing else LATER)
    return Attempt(result.group, result.version, at, result.reason, again_at)
