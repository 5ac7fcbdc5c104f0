"""A group of real consumers on a real broker, looked at, analysed, and given what plans come of it.

Belongs here: the group, its load and its planner; and its looks as a line of `fairlead decide`, for
whoever wants to analyse them again. Does not: any expectation (the tests), nor the consumers' work
(`reader`).
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fairlead.domain.analysis.capacities import Capacity
from fairlead.domain.analysis.decide import PlanDecision, decide
from fairlead.domain.analysis.looks import Int32
from fairlead.domain.analysis.question import Question
from fairlead.domain.analysis.rules import Rules
from fairlead.domain.samples.questions import Group, PlanningOptions, question_about
from fairlead.kafka.gateway import KafkaGateway
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.sandbox import Services
from fairlead.settings import KafkaSettings
from fairlead.surfaces.demo.load import Load
from fairlead.surfaces.demo.scenario import DemoGroup
from fairlead.surfaces.demo.topics_and_consumers import Consumers, create_backlog
from fairlead.wire.document import MemberShare, PlanDocument
from tests.fairlead.domain.analysis.questions import line_of
from tests.fairlead.followers.helpers import Fleet, wait_until_settled

# clocks: how often is looked, and whether the machine kept that pace

#: Who is held up by a busy machine for a larger share of the time between looks than this is slow,
#: whatever it reads, and that is remembered; and a look that comes so late was held up.
HELD_UP = 0.1


class Seen(NamedTuple):
    """What was analysed at a look.

    `owner` is who owned what, int32 of shape (P,), -1: nobody; `disturbed` whether a busy machine
    has ever held a member up, by the member's own report, or the looks; `published` whether it was
    a plan, and another one than the group was to follow.
    """

    decision: PlanDecision
    owner: Int32
    disturbed: bool
    published: bool


class Planned:
    """A group of real consumers, looked at again and again, whose plans are published at once.

    Parameters
    ----------
    fleet, gateway, consumers
        The group, where it is looked at, and its processes.
    rules
        Of its policy.
    faster
        How many times as fast as the machine's the clock of the looks runs: whatever the analysis
        takes minutes for takes so much less.
    look_every_s
        Seconds between looks, by their own clock.
    """

    def __init__(
        self,
        fleet: Fleet,
        gateway: KafkaGateway,
        consumers: Consumers,
        rules: Rules,
        *,
        faster: int,
        look_every_s: float,
    ) -> None:
        self._fleet, self._gateway, self._consumers = fleet, gateway, consumers
        self._rules, self._faster, self._every_s = rules, faster, look_every_s / faster
        self._began, self._next_at = datetime.now(UTC), time.monotonic()
        self._looks: list[pa.Table] = []
        self._capacities: dict[str, Capacity] = {}
        self._plans: list[float] = []
        self._followed: Int32 | None = None
        self._disturbed = False
        self._question: Question | None = None
        self.seen: list[Seen] = []

    def looks(self, count: int) -> Iterator[Seen]:
        """Look so many times; yields what was analysed, its plan published."""
        for _ in range(count):
            due = self._next_at + self._every_s
            self._next_at = max(due, time.monotonic())
            time.sleep(max(0.0, due - time.monotonic()))
            self._consumers.update()
            late_s = time.monotonic() - due
            if max(late_s, self._consumers.held_up_s) > HELD_UP * self._every_s:
                self._disturbed = True
            self._consumers.held_up_s = 0.0
            if (seen := self._analysed()) is not None:
                yield seen

    def until(self, condition: Callable[[Seen], bool], within: int) -> Seen:
        """Look until a condition is met, so many times at most.

        Twice as many where the machine held the members up: what it made them look like is
        remembered for some looks.
        """
        told = []
        for seen in self.looks(2 * within):
            diagnosis = seen.decision.diagnosis
            told.append((diagnosis.name, diagnosis.evidence, seen.decision.reason))
            if condition(seen):
                return seen
            if len(told) >= within and not self._disturbed:
                break
        raise AssertionError(f"not at {len(told)} looks: {told}")

    @property
    def disturbed(self) -> bool:
        """Whether the machine has held the members up, or the looks."""
        return self._disturbed

    @property
    def plans(self) -> list[Seen]:
        """What was analysed where a plan was published."""
        return [seen for seen in self.seen if seen.published]

    @property
    def line(self) -> dict[str, Any]:
        """What was analysed last, as `fairlead decide` reads it."""
        question = self._question
        assert question is not None
        memory = {name: _remembered(capacity) for name, capacity in question.capacities.items()}
        remembered = {"format": 1, "members": memory} if memory else None
        line = line_of(question.problem, question.looks, remembered, question.changed_at)
        return line | {"policy": _policy(self._rules)}

    def work_at(self, member: int, share: float) -> None:
        """Let a member do so much of what is usual from now on."""
        scenario = self._consumers.scenario
        self._consumers.work_at(scenario.members[member], round(scenario.rate * share))

    def _analysed(self) -> Seen | None:
        """Look, analyse, and publish the plan; None: the group rebalances, and is not analysed."""
        samples = self._gateway.snapshot([self._fleet.group]).samples
        self._looks.append(self._on_its_clock(samples))
        group = Group(pa.concat_tables(self._looks), self._capacities, self._plans)
        if group.now["error"] is not None:
            return None
        question = question_about(group, PlanningOptions(rules=self._rules))
        self._question = question
        decision = decide(question)
        plan = decision.owner
        before = self._followed
        published = plan is not None and (before is None or not np.array_equal(plan, before))
        self.seen.append(Seen(decision, question.problem.owner, self._disturbed, published))
        self._capacities = dict(decision.capacities)
        if published and decision.chosen is not None and decision.chosen.assignment is not None:
            self._followed = plan
            self._fleet.publish(self._document(decision.chosen.assignment.by_member()))
            self._plans.append(self._told(datetime.now(UTC)).timestamp())
        return self.seen[-1]

    def _told(self, at: datetime) -> datetime:
        """Return what the clock of the looks says at a moment."""
        return self._began + (at - self._began) * self._faster

    def _on_its_clock(self, look: pa.Table) -> pa.Table:
        place = look.schema.get_field_index("at")
        (at,) = look["at"].to_pylist()
        return look.set_column(place, look.schema.field(place), [[self._told(at)]])

    def _document(self, shares: dict[str, dict[str, list[int]]]) -> PlanDocument:
        topics = {topic: len(counts) for topic, counts in self._consumers.scenario.backlog.items()}
        now = datetime.now(UTC)
        return PlanDocument(
            group=self._fleet.group,
            version=len(self.plans),
            plan_id=f"plan-{len(self.plans)}",
            assignor="sticky-lag-aware",
            created_at=now,
            snapshot_at=now,
            partition_counts=topics,
            members={
                name: MemberShare(
                    tuple(topics),
                    {topic: np.array(own, np.int32) for topic, own in owned.items()},
                )
                for name, owned in shares.items()
            },
            weights={},
        )


def _remembered(capacity: Capacity) -> dict[str, Any]:
    return {
        "records_per_s": capacity.records_per_s,
        "measured": capacity.measured,
        "at": datetime.fromtimestamp(capacity.at, UTC).isoformat(),
    }


def _policy(rules: Rules) -> dict[str, Any]:
    return {
        "objective": f"PT{rules.objective_s:g}S",
        "horizon": f"PT{rules.horizon_s:g}S",
        "pause": f"PT{rules.pause_s:g}S",
    }


@contextmanager
def planner_of(
    services: Services,
    scenario: DemoGroup,
    log: Path,
    *,
    rules: Rules,
    faster: int,
    look_every_s: float,
    command: Sequence[str],
) -> Iterator[Planned]:
    """Start a group's consumers by a command, and its load, and return what plans for it."""
    name = scenario.name
    settings = KafkaSettings(
        bootstrap_servers=services.bootstrap_servers,
        plan_topic=f"{name}-plans",
        pin_topic=f"{name}-plans-pins",
    )
    with ExitStack() as stack:
        create_backlog(services.bootstrap_servers, scenario)
        with PlanTopic(settings) as topic:
            topic.ensure()
        fleet = Fleet(services, name, settings.plan_topic, [name])
        stack.callback(fleet.close)
        consumers = stack.enter_context(
            Consumers(scenario, name, services.bootstrap_servers, settings.plan_topic, log, command)
        )
        wait_until_settled(consumers)
        stack.enter_context(Load(services.bootstrap_servers, [scenario]))
        consumers.start_work()
        gateway = stack.enter_context(KafkaGateway(settings))
        yield Planned(fleet, gateway, consumers, rules, faster=faster, look_every_s=look_every_s)
