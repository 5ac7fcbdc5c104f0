"""A group of real consumers on a real broker, looked at, judged, and given what plans come of it.

Belongs here: the group, its load and its planner; and its looks as a line of `fairlead decide`, for
whoever wants to judge them again. Does not: any expectation (the tests), nor the consumers' work
(`reader`, the demo's `worker`).
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fairlead.domain.judgement.capacities import Capacity
from fairlead.domain.judgement.decision import Judgement, Question, judge
from fairlead.domain.judgement.looks import Int32
from fairlead.domain.judgement.rules import Rules
from fairlead.domain.looks.look import look_of
from fairlead.domain.looks.questions import Group, PlanningOptions, question_about
from fairlead.kafka.gateway import KafkaGateway
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.sandbox import Services
from fairlead.settings import KafkaSettings
from fairlead.surfaces.demo.load import Load
from fairlead.surfaces.demo.scenario import DemoGroup
from fairlead.surfaces.demo.topics_and_consumers import WORKER, Consumers, create_backlog
from fairlead.wire.document import MemberShare, PlanDocument
from tests.fairlead.domain.judgement.questions import line_of
from tests.fairlead.followers.helpers import Fleet, wait_until_settled

#: Who is held up for longer than this by a busy machine is slow for a while, whatever it reads.
HELD_UP_S = 0.3
#: For so many looks: those that a measured speed rests on at most, and some.
DISTURBED_LOOKS = 12


class Planned:
    """A group of real consumers, looked at again and again, whose plans are published at once."""

    def __init__(
        self,
        fleet: Fleet,
        gateway: KafkaGateway,
        consumers: Consumers,
        rules: Rules,
        look_every_s: float,
    ) -> None:
        self._fleet, self._gateway, self._consumers = fleet, gateway, consumers
        self._rules, self._look_every_s = rules, look_every_s
        self._looks: list[pa.Table] = []
        self._capacities: dict[str, Capacity] = {}
        self._changed_at: float | None = None
        self._held_up_at = -DISTURBED_LOOKS
        self.judged: list[Judgement] = []
        self.plans: list[Judgement] = []
        #: Of these, those for which a busy machine is no excuse.
        self.undisturbed_plans = 0
        self._question: Question | None = None

    def judgements(self, within_s: float) -> Iterator[Judgement]:
        """Look and decide for so long; yields each judgement, its plan published."""
        next_at = time.monotonic()
        end = next_at + within_s
        while time.monotonic() < end:
            next_at = max(next_at + self._look_every_s, time.monotonic())
            time.sleep(max(0.0, next_at - time.monotonic()))
            self._consumers.update()
            yield self._judged()

    def until(self, condition: Callable[[Judgement], bool], within_s: float) -> Judgement:
        """Look until a judgement meets a condition."""
        seen = []
        for judgement in self.judgements(within_s):
            seen.append((judgement.diagnosis.name, judgement.diagnosis.evidence, judgement.reason))
            if condition(judgement):
                return judgement
        raise AssertionError(f"not within {within_s} s: {seen}")

    @property
    def owner(self) -> Int32:
        """Who owned what at the last look, int32 of shape (P,); -1: nobody."""
        assert self._question is not None
        return self._question.problem.owner

    @property
    def line(self) -> dict[str, Any]:
        """What was judged last, as `fairlead decide` reads it."""
        question = self._question
        assert question is not None
        memory = {name: _remembered(capacity) for name, capacity in question.capacities.items()}
        remembered = {"format": 1, "members": memory} if memory else None
        line = line_of(question.problem, question.looks, remembered, question.changed_at)
        return line | {"policy": _policy(self._rules)}

    @property
    def disturbed(self) -> bool:
        """Whether a busy machine held a member up lately, by the member's own report."""
        return len(self._looks) - self._held_up_at < DISTURBED_LOOKS

    def undisturbed(self, looks: int, within_s: float) -> list[Judgement]:
        """Look until the machine left the members alone at so many looks, and return these."""
        stretch: list[Judgement] = []
        for judgement in self.judgements(within_s):
            stretch = [] if self.disturbed else [*stretch, judgement]
            if len(stretch) == looks:
                return stretch
        raise AssertionError(f"for {within_s} s the machine had no processor to give")

    def _judged(self) -> Judgement:
        if self._consumers.held_up_s > HELD_UP_S:
            self._held_up_at = len(self._looks) + 1
        self._consumers.held_up_s = 0.0
        snapshot = self._gateway.snapshot([self._fleet.group])
        self._looks.append(look_of(snapshot))
        (described,) = snapshot.groups.to_pylist()
        group = Group(
            described,
            snapshot.members.to_pylist(),
            pa.concat_tables(self._looks),
            [{"member": name, **vars(capacity)} for name, capacity in self._capacities.items()],
            self._changed_at,
        )
        question = question_about(group, PlanningOptions(rules=self._rules))
        self._question = question
        judgement = judge(question)
        self.judged.append(judgement)
        self._capacities = dict(judgement.capacities)
        if judgement.chosen is not None and judgement.chosen.assignment is not None:
            self.plans.append(judgement)
            self.undisturbed_plans += not self.disturbed
            shares = judgement.chosen.assignment.by_member()
            self._fleet.publish(self._document(shares))
            self._changed_at = time.time()
        return judgement

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
        "note": capacity.note,
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
    look_every_s: float,
    command: Sequence[str] = WORKER,
) -> Iterator[tuple[Planned, Consumers]]:
    """Start a group's consumers and its load, and return what plans for it."""
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
        yield Planned(fleet, gateway, consumers, rules, look_every_s), consumers


def planned_for(judgement: Judgement, *diagnoses: str) -> bool:
    """Return whether a judgement makes a plan because of one of these diagnoses."""
    return judgement.outcome == "plan" and judgement.diagnosis.name in diagnoses
