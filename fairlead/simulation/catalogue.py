"""The scenarios by name.

Belongs here: what is simulated. Does not: random ones (`random_scenarios`).
"""

from collections.abc import Mapping
from types import MappingProxyType

from fairlead.errors import FairleadError
from fairlead.simulation.scenario import (
    Change,
    Commits,
    Growth,
    Scenario,
    Slow,
    Stuck,
    rolling_restart,
)
from fairlead.simulation.traffic import HOUR_S, Surge, Traffic, Wander

#: Half of the machines twice as fast, together as fast as ten of 100.
_UNEQUAL = (200 / 3, 400 / 3) * 5
#: Shuffles of Zipf's shares by which two, and one, of the ten members of `range` are overloaded.
_TWO_OVERLOADED = 0
_ONE_OVERLOADED = 0
_SKEW = Traffic(used=0.85, zipf=0.6, shuffle=_TWO_OVERLOADED)
_SKEW_70 = Traffic(used=0.70, zipf=0.6, shuffle=_ONE_OVERLOADED)

_ALL = (
    Scenario("even", "even traffic, 60 % used", "healthy", Traffic(used=0.6)),
    Scenario(
        "even-by-day", "even, 30 to 80 % by day and night", "healthy", Traffic(used=0.3, peak=0.8)
    ),
    Scenario("idle", "even, 5 % used", "healthy", Traffic(used=0.05)),
    Scenario(
        "mild-skew", "Zipf 0.3, 60 % used: uneven, but nobody is overloaded", "healthy",
        Traffic(used=0.6, zipf=0.3),
    ),
    Scenario(
        "late-commits-7", "even, 60 % used, commits every 7 minutes", "healthy",
        Traffic(used=0.6), commits=Commits(7 * 60.0),
    ),
    Scenario(
        "late-commits-10", "even, 60 % used, the group commits every 10 minutes at once", "healthy",
        Traffic(used=0.6), commits=Commits(10 * 60.0, together=True),
    ),
    Scenario(
        "markers", "mild skew, 60 % used, transactional: lag 1 at rest", "healthy",
        Traffic(used=0.6, zipf=0.3), markers=True,
    ),
    Scenario("skew", "Zipf 0.6, 85 % used", "steady", _SKEW),
    Scenario(
        "skew-by-day", "Zipf 0.6, 40 to 92 % by day and night", "steady",
        Traffic(used=0.40, peak=0.92, zipf=0.6, shuffle=_TWO_OVERLOADED), events=2,
    ),
    Scenario(
        "unequal", "equal partitions, half of the machines twice as fast, 85 % used", "steady",
        Traffic(used=0.85), speeds=_UNEQUAL,
    ),
    Scenario(
        "slow-machine", "Zipf 0.6, 85 % used, one machine at 40 % of its speed", "steady",
        _SKEW, slow=(Slow(3, 0.4),),
    ),
    Scenario(
        "stuck", "Zipf 0.6, 70 % used; the overloaded member never commits one partition",
        "steady", _SKEW_70, stuck=(Stuck(53, from_s=HOUR_S),),
    ),
    Scenario(
        "stuck-elsewhere", "the same, of a member that keeps up", "steady", _SKEW_70,
        stuck=(Stuck(17, from_s=HOUR_S),),
    ),
    Scenario(
        "poison", "Zipf 0.6, 70 % used; one partition is read by nobody", "steady", _SKEW_70,
        stuck=(Stuck(53, consumed=False, from_s=HOUR_S),),
    ),
    Scenario(
        "restarts", "Zipf 0.6, 85 % used, a rolling restart every 12 hours", "steady", _SKEW,
        changes=tuple(
            change
            for start in (3, 15, 27, 39)
            for change in rolling_restart(10, (start + 0.05) * HOUR_S)
        ),
    ),
    Scenario(
        "late-commits-skew", "Zipf 0.6, 85 % used, commits every 7 minutes", "steady", _SKEW,
        commits=Commits(7 * 60.0),
    ),
    Scenario(
        "wander", "five hot partitions that wander every 2 hours, 75 % used", "changing",
        Traffic(used=0.75, wander=Wander(), shuffle=7), events=23,
    ),
    Scenario(
        "flash-crowd", "even, 50 % used; two hours in which a tenth gets four times as much",
        "changing",
        Traffic(
            used=0.5,
            surges=(Surge(tuple(range(20, 30)), 4.0, 20.12 * HOUR_S, 22.12 * HOUR_S),),
        ),
        events=2,
    ),
    Scenario(
        "slow-for-hours", "even, 70 % used; one machine at 40 % for six hours, then quick again",
        "changing", Traffic(used=0.7), slow=(Slow(3, 0.4, 12.12 * HOUR_S, 18.12 * HOUR_S),),
        events=2,
    ),
    Scenario(
        "growing-topic", "Zipf 0.6, 80 % used; a topic grows from 60 to 100 partitions",
        "changing", Traffic(used=0.8, zipf=0.6), topics=(60,),
        growth=(Growth(18.12 * HOUR_S, 0, 100),), events=2,
    ),
    Scenario(
        "joining-leaving", "Zipf 0.6, 70 % used; two members leave, two others join later",
        "changing", Traffic(used=0.70, zipf=0.6), speeds=(100.0,) * 12, absent=(10, 11),
        changes=(
            Change(12.1 * HOUR_S, 2, joins=False),
            Change(14.1 * HOUR_S, 10, joins=True),
            Change(24.1 * HOUR_S, 7, joins=False),
            Change(30.1 * HOUR_S, 11, joins=True),
        ),
        events=5,
    ),
    Scenario(
        "overloaded", "Zipf 0.6, 115 % used: no assignment helps", "hopeless",
        Traffic(used=1.15, zipf=0.6),
    ),
    Scenario(
        "hot-partition", "even, 50 % used; one partition fills faster than anybody drains",
        "hopeless", Traffic(used=0.5, surges=(Surge((42,), 26.0, 8.12 * HOUR_S),)),
    ),
)  # fmt: skip

SCENARIOS: Mapping[str, Scenario] = MappingProxyType({scenario.name: scenario for scenario in _ALL})


class UnknownScenarioError(FairleadError):
    """There is no scenario, or controller, of that name; the message says which there are."""


def scenario(name: str) -> Scenario:
    """Return a scenario by its name.

    Raises
    ------
    UnknownScenarioError
        There is none.
    """
    if name not in SCENARIOS:
        raise UnknownScenarioError(f"There is no scenario {name}; there are {', '.join(SCENARIOS)}")
    return SCENARIOS[name]
