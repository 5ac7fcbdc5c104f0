"""The judgement on a real broker: what real consumers commit, what real plans do."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from fairlead.domain.judgement.capacities import Capacity
from fairlead.domain.judgement.decision import Judgement, judge
from fairlead.domain.judgement.rules import Rules
from fairlead.domain.looks.look import look_of
from fairlead.domain.looks.questions import Group, Ways, question_about
from fairlead.kafka.gateway import KafkaGateway
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.sandbox import Services
from fairlead.settings import KafkaSettings
from fairlead.surfaces.demo.cluster import Consumers, create_backlog
from fairlead.surfaces.demo.load import Load
from fairlead.surfaces.demo.scenario import DemoGroup
from fairlead.wire.document import MemberShare, PlanDocument
from tests.fairlead.followers.helpers import Fleet

pytestmark = pytest.mark.kafka

#: A minute ahead and five seconds late: everything happens sixty times as fast as by default.
RULES = Rules(objective_s=5.0, horizon_s=60.0, pause_s=1.0)
LOOK_EVERY_S = 1.0


class Planned:
    """A group of real consumers, looked at every second, whose plans are published at once."""

    def __init__(self, fleet: Fleet, gateway: KafkaGateway, consumers: Consumers) -> None:
        self._fleet, self._gateway, self._consumers = fleet, gateway, consumers
        self._looks: list[pa.Table] = []
        self._capacities: dict[str, Capacity] = {}
        self._changed_at: float | None = None
        self.plans: list[Judgement] = []

    def judgements(self, within_s: float) -> Iterator[Judgement]:
        """Look and decide for so long; yields each judgement, its plan published."""
        end = next_at = time.monotonic() + 0.0
        end += within_s
        while time.monotonic() < end:
            next_at += LOOK_EVERY_S
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

    def _judged(self) -> Judgement:
        snapshot = self._gateway.snapshot([self._fleet.group])
        self._looks.append(look_of(snapshot))
        (described,) = snapshot.groups.to_pylist()
        group = Group(
            described,
            snapshot.members.to_pylist(),
            pa.concat_tables(self._looks),
            [{"member": name, **vars(one)} for name, one in self._capacities.items()],
            self._changed_at,
        )
        question = question_about(group, Ways(rules=RULES))
        judgement = judge(question)
        self._capacities = dict(judgement.capacities)
        if judgement.chosen is not None and judgement.chosen.assignment is not None:
            self.plans.append(judgement)
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


@contextmanager
def planner_of(
    services: Services, scenario: DemoGroup, log: Path
) -> Iterator[tuple[Planned, Consumers]]:
    """Start a group's consumers and its load, and return what plans for it."""
    name = scenario.name
    settings = KafkaSettings(
        bootstrap_servers=services.bootstrap_servers, plan_topic=f"{name}-plans"
    )
    with ExitStack() as stack:
        create_backlog(services.bootstrap_servers, scenario)
        with PlanTopic(settings) as topic:
            topic.ensure()
        fleet = Fleet(services, name, settings.plan_topic, [name])
        stack.callback(fleet.close)
        consumers = stack.enter_context(
            Consumers(scenario, name, services.bootstrap_servers, settings.plan_topic, log)
        )
        deadline = time.monotonic() + 60
        while not consumers.settled:
            assert time.monotonic() < deadline, "the consumers did not join"
            consumers.update()
            time.sleep(0.1)
        stack.enter_context(Load(services.bootstrap_servers, [scenario]))
        consumers.start_work()
        gateway = stack.enter_context(KafkaGateway(settings))
        yield Planned(fleet, gateway, consumers), consumers


def planned_for(judgement: Judgement, *diagnoses: str) -> bool:
    """Return whether a judgement makes a plan because of one of these diagnoses."""
    return judgement.outcome == "plan" and judgement.diagnosis.name in diagnoses


def test_a_dear_partition_gets_room_whatever_is_blamed(
    services: Services, unique_name: str, tmp_path: Path
) -> None:
    """In a plain loop a record that takes eleven times as long holds up all that its owner reads.

    That is its owner's slowness, or what it reads: both are cured by relief. Nobody says that the
    partition crawls. The partition takes 0.69 of a member, its owner's others 0.44, all together
    2.1 members: a machine that is a fifth slower still has room.
    """
    scenario = DemoGroup(
        unique_name,
        {unique_name: [10] * 24},
        consumers=3,
        rate=150,
        load=0.5,
        dear={f"{unique_name}-7": 11.0},
    )
    with planner_of(services, scenario, tmp_path / "consumers.log") as (planner, _):
        planner.until(lambda one: planned_for(one, "slow member", "badly spread"), 180)

        def has_room(judgement: Judgement) -> bool:
            owner = planner.plans[-1].owner
            assert owner is not None
            fewer = np.bincount(owner)[owner[7]] < np.bincount(owner).max()
            return judgement.diagnosis.name == "healthy" and bool(fewer)

        planner.until(has_room, 180)
        said = {one.diagnosis.name for one in planner.judgements(15)}
        assert not said & {"crawling partition", "stuck partition", "hot partition"}
        planner.until(has_room, 60)
        assert len(planner.plans) <= 3


@pytest.fixture
def planned(
    services: Services, unique_name: str, tmp_path: Path
) -> Iterator[tuple[Planned, Consumers]]:
    """Return three consumers of 150 records a second, used to a half, and their planner.

    On a busy machine they do a fifth less: one plan has to be enough for a slow one then, too.
    """
    scenario = DemoGroup(unique_name, {unique_name: [10] * 12}, consumers=3, rate=150, load=0.5)
    with planner_of(services, scenario, tmp_path / "consumers.log") as found:
        yield found


def test_slow_consumer_is_named_relieved_by_one_plan_and_left_alone_when_it_is_quick_again(
    planned: tuple[Planned, Consumers],
) -> None:
    """Healthy: no plan. At a quarter of its speed: named, one plan, in time again. No other."""
    planner, consumers = planned
    slow = consumers.scenario.members[1]
    assert [one.diagnosis.name for one in planner.judgements(15)][-1] == "healthy"
    assert not planner.plans

    consumers.work_at(slow, consumers.scenario.rate // 4)
    found = planner.until(lambda one: planned_for(one, "slow member"), 180)
    assert found.diagnosis.names[0] == slow, found.diagnosis
    planner.until(lambda one: one.diagnosis.name == "healthy", 180)

    consumers.work_at(slow, consumers.scenario.rate)
    assert [one.diagnosis.name for one in planner.judgements(15)][-1] == "healthy"
    # Where the machine stalls for a while, its members are slow once more.
    assert len(planner.plans) <= 2
