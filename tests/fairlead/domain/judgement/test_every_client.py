"""What takes the time, on a real broker: groups of every client, each of which shares it otherwise.

Everything happens three times as fast as by default: looks come every twenty seconds, and clients
commit, fetch and poll as much more often. `test_on_broker` has the short forms, of one client.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from fairlead.domain.judgement.decision import Judgement
from fairlead.domain.judgement.rules import Rules
from fairlead.sandbox import Services
from fairlead.surfaces.demo.scenario import DemoGroup
from tests.fairlead.domain.judgement.on_broker import Planned, planned_for, planner_of

GUARD = "tests/fairlead/domain/judgement/test_on_broker.py"
pytestmark = [pytest.mark.kafka, pytest.mark.test_long(guarded_by=GUARD)]

FASTER = 3
RULES = Rules(objective_s=60 / FASTER, horizon_s=1800 / FASTER, pause_s=10 / FASTER)
READER = (sys.executable, str(Path(__file__).with_name("reader.py")), "--faster", str(FASTER))
#: How records come to twelve partitions; of three members in a range the first gets two thirds.
SKEWED = (64, 32, 21, 16, 13, 11, 9, 8, 7, 6, 6, 5)
EVEN = (16,) * 12
RATE = 150
CLIENTS = ("kafka-python", "aiokafka-for", "aiokafka-getmany", "confluent-kafka")
WITH_DESKS = ("kafka-python", "aiokafka-getmany", "confluent-kafka")
#: `getmany` commits ahead of the work: docs/limits.md says what that leaves uncertain.
AHEAD = "aiokafka-getmany"
#: Each record of the last partition takes half a second: 3.8/s come, and 2/s can be read.
LAST, HALF_A_SECOND = 11, 75.0


@dataclass(frozen=True)
class Told:
    """What is true of a group: what records of a partition take, and what members can do."""

    spread: Sequence[int]
    load: float
    dear: Mapping[int, float] = field(default_factory=dict)
    slow: Mapping[int, float] = field(default_factory=dict)

    def scenario(self, name: str) -> DemoGroup:
        """Return the group, under a name."""
        dear = {f"{name}-{number}": cost for number, cost in self.dear.items()}
        topics = {name: list(self.spread)}
        return DemoGroup(name, topics, 3, RATE, slow=self.slow, load=self.load, dear=dear)

    def utilisation(self, planner: Planned) -> float:
        """Return how full the fullest member is, as the group is assigned."""
        speeds = RATE * np.array([self.slow.get(member, 1.0) for member in range(3)])
        rates = np.array(self.spread) / sum(self.spread) * self.load * speeds.sum()
        work = rates * [self.dear.get(number, 1.0) for number in range(rates.size)]
        owner = planner.owner
        if (owner < 0).any():
            return np.inf
        return float((np.bincount(owner, work, 3) / speeds).max())


@contextmanager
def at_work(
    services: Services, told: Told, name: str, log: Path, client: str, *options: str
) -> Iterator[Planned]:
    """Start three consumers of a client, and return their planner."""
    command = (*READER, "--client", client, *options)
    with planner_of(
        services,
        told.scenario(name),
        log,
        rules=RULES,
        look_every_s=60 / FASTER,
        command=command,
    ) as (planner, _):
        yield planner


def said(planner: Planned) -> set[str]:
    """Return every diagnosis that there was."""
    return {judgement.diagnosis.name for judgement in planner.judged}


@pytest.mark.parametrize("client", CLIENTS)
def test_dear_partition_under_skew_gets_room(
    services: Services, unique_name: str, tmp_path: Path, client: str
) -> None:
    """Its records take ten times as long. A few plans, and nobody gets more than he can do.

    What a record takes is learnt but for what is committed ahead of the work.
    """
    told = Told(SKEWED, 1 / 3, dear={3: 10.0})
    with at_work(services, told, unique_name, tmp_path / "log", client) as planner:
        planner.until(lambda judged: planned_for(judged, "badly spread", "slow member"), 400)
        if client != AHEAD:

            def cured(judgement: Judgement) -> bool:
                known = 6.0 < judgement.costs.value[3] < 15.0
                healthy = judgement.diagnosis.name == "healthy"
                return known and healthy and told.utilisation(planner) < 1.0

            planner.until(cured, 900)
        else:
            planner.undisturbed(12, 600)
        assert not said(planner) & {"crawling partition", "stuck partition"}
        assert planner.undisturbed_plans <= 4


@pytest.mark.parametrize("client", WITH_DESKS)
def test_crawling_partition_is_named_and_nobody_is_blamed(
    services: Services, unique_name: str, tmp_path: Path, client: str
) -> None:
    """With a worker and a pause for each partition others are read as they come. No plan."""
    told = Told(SKEWED, 1 / 3, dear={LAST: HALF_A_SECOND})
    with at_work(services, told, unique_name, tmp_path / "log", client, "--desks") as planner:
        found = planner.until(lambda judged: judged.diagnosis.name == "crawling partition", 400)
        assert found.diagnosis.names == (f"{unique_name}-{LAST}",)
        assert planner.undisturbed(8, 600)[-1].diagnosis.name == "crawling partition"
        assert said(planner) <= {"unknown", "healthy", "recovering", "crawling partition"}
        assert not planner.plans


@pytest.mark.parametrize("client", CLIENTS)
def test_same_slow_records_in_a_plain_loop_are_dear(
    services: Services, unique_name: str, tmp_path: Path, client: str
) -> None:
    """They hold up all that their owner reads: relief is due, and nothing crawls."""
    told = Told(SKEWED, 1 / 3, dear={LAST: HALF_A_SECOND})
    with at_work(services, told, unique_name, tmp_path / "log", client) as planner:
        planner.until(
            lambda judged: planned_for(judged, "badly spread", "slow member", "hot partition"), 400
        )
        planner.undisturbed(12, 600)
        assert not said(planner) & {"crawling partition", "stuck partition"}


@pytest.mark.parametrize("client", CLIENTS)
def test_slow_consumer_is_relieved(
    services: Services, unique_name: str, tmp_path: Path, client: str
) -> None:
    """At a third of its speed: a plan or two, and it is well again."""
    told = Told(EVEN, 0.55, slow={1: 0.35})
    with at_work(services, told, unique_name, tmp_path / "log", client) as planner:
        found = planner.until(
            lambda judged: planned_for(judged, "badly spread", "slow member"), 400
        )
        assert found.diagnosis.names[0] == f"{unique_name}-2"

        def cured(judgement: Judgement) -> bool:
            return judgement.diagnosis.name == "healthy" and told.utilisation(planner) < 1.0

        planner.until(cured, 900)
        assert not said(planner) & {"crawling partition", "stuck partition", "hot partition"}
        assert planner.undisturbed_plans <= 3


@pytest.mark.parametrize("client", CLIENTS)
def test_slow_consumer_of_a_dear_partition_gives_up_what_it_cannot_do(
    services: Services, unique_name: str, tmp_path: Path, client: str
) -> None:
    """It is half as fast as the others, and the partition alone would be too much for it."""
    told = Told(SKEWED, 0.4, dear={5: 10.0}, slow={1: 0.5})
    with at_work(services, told, unique_name, tmp_path / "log", client) as planner:
        planner.until(lambda judged: planned_for(judged, "badly spread", "slow member"), 400)
        if client != AHEAD:

            def cured(judgement: Judgement) -> bool:
                return judgement.diagnosis.name == "healthy" and told.utilisation(planner) < 1.0

            planner.until(cured, 900)
        else:
            planner.undisturbed(12, 600)
        assert not said(planner) & {"crawling partition", "stuck partition"}
        assert planner.undisturbed_plans <= 4
