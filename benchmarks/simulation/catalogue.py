"""Scenarios by name; random ones are in `benchmarks.random_scenarios`."""

from collections.abc import Mapping
from types import MappingProxyType

from benchmarks.simulation.churn import MemberChange, replacements, rolling_restart
from benchmarks.simulation.costs import Expensive, TrueCosts
from benchmarks.simulation.crawling import Crawl
from benchmarks.simulation.misses import Misses
from benchmarks.simulation.scenario import CommitHabit, Growth, Scenario, Slow, Stuck
from benchmarks.simulation.traffic import HOUR_S, Surge, Traffic, Wander

#: Records/s of each machine, 1,000 in total. Every second machine is twice as fast as the others.
_UNEQUAL = (200 / 3, 400 / 3) * 5
#: Seeds for the order in which partitions get the shares of Zipf's law. With these seeds, `range`
#: overloads two of ten members at 85 % utilisation, and one at 70 %.
_TWO_OVERLOADED = 0
_ONE_OVERLOADED = 0
_SKEW = Traffic(used=0.85, zipf=0.6, shuffle=_TWO_OVERLOADED)
_SKEW_70 = Traffic(used=0.70, zipf=0.6, shuffle=_ONE_OVERLOADED)
#: One sample in twenty lacks the end offsets of a broker's partitions; one in twenty lacks owners.
_MISSES = Misses(leader=0.05, coordinator=0.05)
#: Ten of 100 partitions are expensive. Under `range`, four of ten members own two or three of them.
_HEAVY = TrueCosts(expensive=(Expensive(8.0, (2, 5, 21, 24, 27, 43, 46, 61, 64, 67)),))
_CHUNKS = "kafka-python"

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
        Traffic(used=0.6), commits=CommitHabit(7 * 60.0),
    ),
    Scenario(
        "late-commits-10", "even, 60 % used, the group commits every 10 minutes at once", "healthy",
        Traffic(used=0.6), commits=CommitHabit(10 * 60.0, together=True),
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
        crawling=(Crawl(53, from_s=HOUR_S),),
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
        commits=CommitHabit(7 * 60.0),
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
        "joining-leaving", "Zipf 0.6, 84 % used; two members leave, two others join later",
        "changing", Traffic(used=0.84, zipf=0.6), speeds=(100.0,) * 12, absent=(10, 11),
        changes=(
            MemberChange(12.1 * HOUR_S, 2, joins=False),
            MemberChange(14.1 * HOUR_S, 10, joins=True),
            MemberChange(24.1 * HOUR_S, 7, joins=False),
            MemberChange(30.1 * HOUR_S, 11, joins=True),
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
    Scenario(
        "even-getmany", "even, 60 % used, aiokafka's getmany", "healthy", Traffic(used=0.6),
        client="aiokafka getmany",
    ),
    Scenario(
        "even-missed", "even, 60 % used; looks miss a broker or all owners, 1 in 20 each",
        "healthy", Traffic(used=0.6), misses=_MISSES,
    ),
    Scenario(
        "crawling", "even, 60 % used; one partition is read at half of what arrives", "healthy",
        Traffic(used=0.6), crawling=(Crawl(42, 3.0, from_s=HOUR_S),),
    ),
    Scenario("skew-chunks", "`skew` with kafka-python: chunks", "steady", _SKEW, client=_CHUNKS),
    Scenario(
        "skew-large", "`skew` with kafka-python and 10 kB records: turns of 104", "steady", _SKEW,
        client=_CHUNKS, record_bytes=10_000.0,
    ),
    Scenario(
        "skew-librdkafka", "`skew` with confluent-kafka: arrival order", "steady", _SKEW,
        client="confluent-kafka",
    ),
    Scenario(
        "skew-getmany", "`skew` with aiokafka's getmany: commits ahead", "steady", _SKEW,
        client="aiokafka getmany",
    ),
    Scenario(
        "skew-missed", "`skew`; looks miss as in `even-missed`", "steady", _SKEW, misses=_MISSES,
    ),
    Scenario(
        "heavy", "even, 85 % used; a tenth of the partitions eight times as expensive", "steady",
        Traffic(used=0.85), costs=_HEAVY,
    ),
    Scenario(
        "heavy-chunks", "`heavy` with kafka-python", "steady", Traffic(used=0.85), costs=_HEAVY,
        client=_CHUNKS,
    ),
    Scenario(
        "own-costs", "even, 85 % used; each partition's records of their own kind", "steady",
        Traffic(used=0.85), costs=TrueCosts(spread=0.8),
    ),
    Scenario(
        "dear-topic-night",
        "two topics, half of one six times as expensive; 27 % used at night, 82 % at noon",
        "changing",
        Traffic(used=0.27, peak=0.82, zipf=0.3), topics=(60, 40),
        costs=TrueCosts(expensive=(Expensive(6.0, tuple(range(30))),)), events=2,
    ),
    Scenario(
        "dear-grows",
        "one member's ten partitions four times as expensive; 20 % used at night, 70 % at noon",
        "changing", Traffic(used=0.20, peak=0.70),
        costs=TrueCosts(expensive=(Expensive(4.0, tuple(range(10))),)), events=2,
    ),
    Scenario(
        "slow-and-dear", "even, 70 % used; a member at half speed reads a partition six times "
        "as expensive", "steady", Traffic(used=0.7), slow=(Slow(2, 0.5),),
        costs=TrueCosts(expensive=(Expensive(6.0, (25,)),)),
    ),
    Scenario(
        "disjoint-dear", "two halves read different topics, 75 % used; five partitions of one are "
        "three times as expensive", "steady", Traffic(used=0.75), topics=(50, 50),
        reads=((0,),) * 5 + ((1,),) * 5,
        costs=TrueCosts(expensive=(Expensive(3.0, tuple(range(5))),)),
    ),
    Scenario(
        "too-dear", "even, 60 % used; one partition takes one and a half members", "hopeless",
        Traffic(used=0.6), costs=TrueCosts(expensive=(Expensive(33.0, (42,)),)),
    ),
    Scenario(
        "two-kinds",
        "Zipf 0.6; six members of 100/s read one topic, 85 % used; four of 400/s read another",
        "steady", Traffic(used=0.386, zipf=0.6), speeds=(100.0,) * 6 + (400.0,) * 4,
        topics=(60, 40), reads=((0,),) * 6 + ((1,),) * 4,
    ),
    Scenario(
        "pair", "two members, twelve partitions, Zipf 0.6, 85 % used", "steady",
        Traffic(used=0.85, zipf=0.6), speeds=(100.0,) * 2, topics=(12,),
    ),
    Scenario(
        "hundreds", "300 members, 900 partitions, Zipf 0.2, 80 % used", "steady",
        Traffic(used=0.8, zipf=0.2), speeds=(100.0,) * 300, topics=(900,),
    ),
    Scenario(
        "deploy", "Zipf 0.6, 44 % used; a deploy makes everything twice as expensive for a day",
        "changing", Traffic(used=0.44, zipf=0.6),
        costs=TrueCosts(expensive=(Expensive(2.0, from_s=12.12 * HOUR_S, until_s=36.12 * HOUR_S),)),
        events=2,
    ),
    Scenario(
        "crawl-heals", "`crawling` until the 24th hour, then it heals", "changing",
        Traffic(used=0.6), crawling=(Crawl(42, 3.0, HOUR_S, 24.12 * HOUR_S),),
    ),
    Scenario(
        "churn", "40 members, Zipf 0.3, 80 % used; every hour one is replaced by another name",
        "changing", Traffic(used=0.8, zipf=0.3), speeds=(100.0,) * 87, topics=(200,),
        absent=tuple(range(40, 87)),
        changes=replacements(40, 47, from_s=0.55 * HOUR_S, every_s=HOUR_S), events=47,
    ),
)  # fmt: skip

SCENARIOS: Mapping[str, Scenario] = MappingProxyType({scenario.name: scenario for scenario in _ALL})
