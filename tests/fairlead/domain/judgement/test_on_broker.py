"""The judgement on a real broker: what real consumers commit, what real plans do."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from fairlead.domain.judgement.decision import Judgement
from fairlead.domain.judgement.rules import Rules
from fairlead.sandbox import Services
from fairlead.surfaces.demo.scenario import DemoGroup
from fairlead.surfaces.demo.topics_and_consumers import Consumers
from tests.fairlead.domain.judgement.on_broker import Planned, planned_for, planner_of

pytestmark = pytest.mark.kafka

#: A minute ahead and five seconds late: everything happens sixty times as fast as by default.
RULES = Rules(objective_s=5.0, horizon_s=60.0, pause_s=1.0)
LOOK_EVERY_S = 1.0


@pytest.mark.test_long(
    guarded_by="tests/fairlead/surfaces/demo/test_demo.py::test_diagnosis_names_what_is_the_matter"
)
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
    log = tmp_path / "consumers.log"
    with planner_of(services, scenario, log, rules=RULES, look_every_s=LOOK_EVERY_S) as found:
        planner, _ = found
        planner.until(lambda judged: planned_for(judged, "slow member", "badly spread"), 180)

        def has_room(judgement: Judgement) -> bool:
            owner = planner.plans[-1].owner
            assert owner is not None
            fewer = np.bincount(owner)[owner[7]] < np.bincount(owner).max()
            return judgement.diagnosis.name == "healthy" and bool(fewer)

        planner.until(has_room, 180)
        said = {judged.diagnosis.name for judged in planner.undisturbed(15, 180)}
        assert not said & {"crawling partition", "stuck partition", "hot partition"}
        planner.until(has_room, 60)
        assert planner.undisturbed_plans <= 3


@pytest.fixture
def planned(
    services: Services, unique_name: str, tmp_path: Path
) -> Iterator[tuple[Planned, Consumers]]:
    """Return three consumers of 150 records a second, used to a half, and their planner.

    On a busy machine they do a fifth less: one plan has to be enough for a slow one then, too.
    """
    scenario = DemoGroup(unique_name, {unique_name: [10] * 12}, consumers=3, rate=150, load=0.5)
    log = tmp_path / "consumers.log"
    with planner_of(services, scenario, log, rules=RULES, look_every_s=LOOK_EVERY_S) as found:
        yield found


def test_slow_consumer_is_named_relieved_by_one_plan_and_left_alone_when_it_is_quick_again(
    planned: tuple[Planned, Consumers],
) -> None:
    """Healthy: no plan. At a third of its speed: named, one plan, in time again. No other.

    Four partitions take 1.5 of what the slow member can do, two of them take 0.75.
    """
    planner, consumers = planned
    slow = consumers.scenario.members[1]
    assert planner.undisturbed(15, 180)[-1].diagnosis.name == "healthy"
    assert not planner.undisturbed_plans

    consumers.work_at(slow, consumers.scenario.rate // 3)
    found = planner.until(lambda judged: planned_for(judged, "slow member"), 180)
    assert found.diagnosis.names[0] == slow, found.diagnosis
    planner.until(lambda judged: judged.diagnosis.name == "healthy", 180)

    consumers.work_at(slow, consumers.scenario.rate)
    assert planner.undisturbed(15, 180)[-1].diagnosis.name == "healthy"
    assert planner.undisturbed_plans <= 1
