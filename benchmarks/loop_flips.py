"""How many groups get different diagnoses although nothing about them changes.

Belongs here: choosing the groups, and counting. Belongs elsewhere: drawing groups
(`random_scenarios`), whether a diagnosis is right (`loop_diagnosis`).
"""

from dataclasses import replace
from typing import Any, Final

from benchmarks.loop_goals import Goal, with_reports
from benchmarks.random_scenarios import CAUSES, random_scenario
from benchmarks.simulation.loop import run
from benchmarks.simulation.planner import Planner
from benchmarks.simulation.traffic import HOUR_S
from benchmarks.simulation.world import ScenarioWorld
from fairlead.domain.analysis.rules import Rules
from fairlead.simulation.controllers import START
from fairlead.simulation.loop import Cadence

#: Number of groups for each client; every second group is unbalanced.
GROUPS: Final = 25
CLIENTS: Final = ("proportional", "kafka-python", "confluent-kafka", "aiokafka getmany")
#: Length of a run. Groups that fall behind are behind after two hours. Only diagnoses of the last
#: hour are compared.
_HOURS: Final = 4.0
_CADENCE: Final = Cadence(sample_s=60.0, decision_s=60.0)
_SHARE: Final = 0.1


def measure(seed: int) -> list[dict[str, Any]]:
    """Diagnose each group every minute; count groups whose diagnosis changes in the last hour."""
    return [
        {
            "client": with_reports(client) if reports else client,
            "groups": GROUPS,
            "flip": sum(_flips(n, client, seed, reports=reports) for n in _numbers()),
        }
        for reports in (False, True)
        for client in CLIENTS
    ]


def _numbers() -> list[int]:
    """Return the numbers of the random groups to use, alternately healthy and unbalanced ones."""
    turns = range((GROUPS + 1) // 2)
    kinds = (CAUSES.index("healthy"), CAUSES.index("unbalanced"))
    return [turn * len(CAUSES) + kind for turn in turns for kind in kinds][:GROUPS]


def _flips(number: int, client: str, seed: int, *, reports: bool) -> bool:
    scenario = replace(random_scenario(number).scenario, client=client)
    planner = Planner(Rules(), plans=False, reports=reports)
    run(ScenarioWorld.of(scenario, seed=seed, hours=_HOURS), planner, _CADENCE)
    since = START.timestamp() + (_HOURS - 1) * HOUR_S
    names = {decision.diagnosis.name for at, decision in planner.decisions if at >= since}
    return len(names) > 1


def goals(rows: list[dict[str, Any]]) -> list[Goal]:
    """Return the goals: the diagnosis changes in at most a tenth of the groups."""
    return [
        Goal(f"steady, {row['client']}", "groups that flip", row["flip"], _SHARE * row["groups"])
        for row in rows
    ]
