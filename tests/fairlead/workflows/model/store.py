"""The database as far as publication sees it: plans and their states, intents, locks.

Belongs here: what `fairlead.store` promises, in memory; each transaction is one step. Does not: who
uses it, and when (`lives`).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, TypeVar
from uuid import UUID

from fairlead.domain.records import StoredPlan
from fairlead.errors import StoreUnavailableError
from fairlead.store.attempts import Attempt
from fairlead.store.freezes import Freeze
from fairlead.store.outbox import PartitionLock
from fairlead.store.outbox_entries import (
    FOLLOWED,
    ON_ITS_WAY,
    POSSIBLE,
    OutboxEntry,
    PublishRequest,
    Standing,
)
from fairlead.store.published_records import PublishedRecord
from fairlead.wire.document import MemberShare, PlanDocument, content_hash
from tests.fairlead.workflows.model.topic import Reach

OPEN: Final = ("proposed", "approved")
Key = tuple[str, int]
Outcome = TypeVar("Outcome")


@dataclass
class ModelStore:
    """Plans by group and version, what was told, what is on its way, and who holds what."""

    reach: Reach
    plans: dict[Key, StoredPlan] = field(default_factory=dict)
    told: dict[str, tuple[str, int, PublishedRecord]] = field(default_factory=dict)
    intents: dict[str, OutboxEntry] = field(default_factory=dict)
    holders: dict[int, "ModelTurn"] = field(default_factory=dict)
    turns: Counter[int] = field(default_factory=Counter)
    epochs: int = 0

    def of(self, group: str, *states: str) -> list[StoredPlan]:
        """Return a group's plans in some states, or all of them, ascending."""
        return [
            plan
            for (name, _), plan in self.plans.items()
            if name == group and (not states or plan.state in states)
        ]

    def propose(self, group: str, members: Mapping[str, MemberShare], at: datetime) -> None:
        """Store the next version; what waited ends. Nothing happens where the group is locked."""
        if self.locked(group):
            return
        self.close_open(group)
        version = len(self.of(group)) + 1
        plan_id = UUID(int=version)
        document = PlanDocument(
            group=group,
            version=version,
            plan_id=str(plan_id),
            assignor="sticky",
            created_at=at,
            snapshot_at=at,
            partition_counts={"t": 2},
            members=members,
        ).to_bytes()
        self.plans[group, version] = StoredPlan(
            group=group,
            version=version,
            plan_id=plan_id,
            state="proposed",
            assignor="sticky",
            reason="",
            snapshot_id="",
            snapshot_at=at,
            created_at=at,
            expires_at=None,
            document=document,
            sha256=content_hash(document),
            approved_sha256=None,
            topic=None,
            partition=None,
            record_offset=None,
            four_eyes=None,
            rolled_back_from=None,
        )

    def step(self, plan: StoredPlan, state: str) -> None:
        """Take a plan to a state."""
        key = (plan.group, plan.version)
        approved = plan.sha256 if state == "approved" else self.plans[key].approved_sha256
        self.plans[key] = replace(self.plans[key], state=state, approved_sha256=approved)

    def close_open(self, group: str) -> None:
        """End what waits."""
        for plan in self.of(group, *OPEN):
            self.step(plan, "expired" if plan.state == "proposed" else "stale")

    def locked(self, group: str) -> bool:
        """Whether a turn that is not over has the group."""
        return any(group in turn.groups and not turn.lost for turn in self.holders.values())

    def free(self, groups: Iterable[str]) -> list[str]:
        """Return the groups that can be locked."""
        return [group for group in groups if not self.locked(group)]

    def version(self) -> tuple[tuple[str, int, str], ...]:
        """Return what differs where any plan has taken a step."""
        return tuple((*key, plan.state) for key, plan in self.plans.items())

    # What publication calls, as `PlanStore` has it.

    def outbox(self) -> "ModelOutbox":
        """Return what is on its way."""
        return ModelOutbox(self)

    def in_state(self, *states: str, groups: Collection[str]) -> list[StoredPlan]:
        """Return the plans of groups in these states."""
        self.reach("before reading plans")
        return [plan for group in sorted(groups) for plan in self.of(group, *states)]

    def freezes(self) -> list[Freeze]:
        """Return none: what a freeze holds is the database's, and not this model's."""
        return []

    def published(self, group: str) -> StoredPlan | None:
        """Return what a group is to follow."""
        return next(iter(self.in_state("published", groups=[group])), None)

    def record_attempts(self, attempts: Sequence[Attempt]) -> None:
        """Forget why plans wait."""

    def mark_stale(self, plan: StoredPlan, *, reason: str) -> bool:
        """End an approved plan."""
        self.reach(f"before stale: {reason}")
        if self.locked(plan.group) or self.plans[plan.group, plan.version].state != "approved":
            return False
        self.step(plan, "stale")
        return True


@dataclass
class ModelOutbox:
    """As `fairlead.store.outbox.Outbox`."""

    store: ModelStore

    @contextmanager
    def turn(self, topic: str, partition: int) -> Iterator["ModelTurn"]:
        """Hold a partition until the intents are committed."""
        store = self.store
        while (holder := store.holders.get(partition)) is not None and not holder.lost:
            store.reach(f"waiting for {topic}-{partition}")
        held = PartitionLock(topic, partition, store.turns[partition] + 1)
        turn = store.holders[partition] = ModelTurn(store, held)
        try:
            store.reach("locked")
            yield turn
            store.reach("before the intents are committed")
            if self._lost(turn):
                raise StoreUnavailableError("the session was ended")
            store.turns[partition] = held.number
            turn.commit()
        finally:
            turn.lost = True
        store.reach("intents committed")

    def _lost(self, turn: "ModelTurn") -> bool:
        return turn.lost

    def outstanding(self, groups: Iterable[str] | None = None) -> list[OutboxEntry]:
        """Return what is on its way."""
        self.store.reach("before reading intents")
        names = sorted(self.store.intents if groups is None else groups)
        intents = self.store.intents
        return [
            replace(intents[name], plan=self.store.plans[name, intents[name].plan.version])
            for name in names
            if name in intents
        ]

    def standing(self, groups: Collection[str]) -> list[Standing]:
        """Return what the database says of groups."""
        self.store.reach("before reading groups")
        found = []
        for group in groups:
            kind, version, record = self.store.told.get(group, ("", 0, None))
            entry = self.store.intents.get(group)
            found.append(
                Standing(
                    group,
                    entry and replace(entry, plan=self.store.plans[group, entry.plan.version]),
                    next(iter(self.store.of(group, "approved")), None),
                    next(
                        (
                            plan
                            for plan in self.store.of(group, "published", "retired")
                            if plan.state == "published"
                            or (kind, version) == ("retired", plan.version)
                        ),
                        None,
                    ),
                    record,
                )
            )
        return found

    def confirm(self, sent: Mapping[str, tuple[OutboxEntry, PublishedRecord]]) -> None:
        """Record that intents were sent."""
        self.store.reach("before the confirmation")
        for intent, at in self._unsettled(sent):
            if not intent.again and intent.kind == "plan":
                for older in self.store.of(intent.group, "published"):
                    self.store.step(older, "superseded")
            if not intent.again and intent.kind == "retired":
                self.store.close_open(intent.group)
            if not intent.again:
                self.store.step(intent.plan, FOLLOWED[intent.kind])
                del self.store.intents[intent.group]
            _, _, last = self.store.told.get(intent.group, ("", 0, at))
            if at.epoch >= last.epoch:
                self.store.told[intent.group] = (intent.kind, intent.plan.version, at)
        self.store.reach("after the confirmation")

    def refuse(self, refused: Mapping[str, tuple[OutboxEntry, str]], held: PartitionLock) -> None:
        """Record that the topic does not take them."""
        self._end(refused, "refused", held)

    def discard(
        self, discarded: Mapping[str, tuple[OutboxEntry, str]], held: PartitionLock
    ) -> None:
        """Record that they will not be sent."""
        self._end(discarded, "stale", held)

    def _end(
        self, ones: Mapping[str, tuple[OutboxEntry, str]], state: str, held: PartitionLock
    ) -> None:
        if not ones:
            return
        self.store.reach(f"before {state}")
        while (other := self.store.holders.get(held.partition)) is not None and not other.lost:
            self.store.reach(f"waiting to say {state}")
        if self.store.turns[held.partition] != held.number:
            raise StoreUnavailableError("another sender has had the partition")
        for intent, _ in self._unsettled(ones):
            if not intent.again:
                del self.store.intents[intent.group]
                if intent.kind == "plan":
                    self.store.step(intent.plan, state)
        self.store.reach(f"after {state}")

    def _unsettled(
        self, ones: Mapping[str, tuple[OutboxEntry, Outcome]]
    ) -> list[tuple[OutboxEntry, Outcome]]:
        found = []
        for group in self.store.free(ones):
            intent, outcome = ones[group]
            state = self.store.plans[group, intent.plan.version].state
            current = self.store.intents.get(group)
            if intent.again:
                if state == FOLLOWED[intent.kind]:
                    found.append((intent, outcome))
            elif current is not None and current.key == intent.key:
                assert state == ON_ITS_WAY[intent.kind], (intent, state)
                found.append((intent, outcome))
        return found


@dataclass(eq=False)
class ModelTurn:
    """A turn at a partition; `lost`: it is over, or the database has ended its session."""

    store: ModelStore
    held: PartitionLock
    lost: bool = False
    groups: set[str] = field(default_factory=set)
    pending: list[OutboxEntry] = field(default_factory=list)
    begun: dict[str, int] = field(default_factory=dict)

    def intend(self, wanted: Sequence[PublishRequest]) -> list[OutboxEntry]:
        """Say what is about to be sent."""
        store, intents = self.store, []
        for asked_for in wanted:
            plan = store.plans[asked_for.group, asked_for.version]
            if store.locked(asked_for.group) or asked_for.group in store.intents:
                continue
            if plan.state not in POSSIBLE[asked_for.kind]:
                continue
            intent = OutboxEntry(
                plan,
                asked_for.kind,
                self._epoch(asked_for),
                asked_for.lease_until,
                again=plan.state == FOLLOWED[asked_for.kind],
                reason=asked_for.reason,
            )
            intents.append(intent)
        self.groups |= {intent.group for intent in intents}
        self.pending = [intent for intent in intents if not intent.again]
        beyond = {asked_for.group for asked_for in wanted if asked_for.beyond is not None}
        self.begun = {
            intent_of.group: intent_of.epoch for intent_of in intents if intent_of.group in beyond
        }
        return intents

    def _epoch(self, intent: PublishRequest) -> int:
        kind, _, sent = self.store.told.get(intent.group, ("", 0, None))
        if sent is not None and kind == "plan" and intent.beyond is None:
            return sent.epoch
        self.store.epochs = max(
            self.store.epochs + 1, (intent.beyond or 0) + 1, 0 if sent is None else sent.epoch + 1
        )
        return self.store.epochs

    def commit(self) -> None:
        """Make it so."""
        for group, epoch in self.begun.items():
            kind, version, sent = self.store.told[group]
            self.store.told[group] = (kind, version, replace(sent, epoch=epoch))
        for intent in self.pending:
            if intent.kind == "plan":
                self.store.step(intent.plan, "sending")
            self.store.intents[intent.group] = intent
