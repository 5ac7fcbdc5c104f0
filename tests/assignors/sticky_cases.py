"""What librdkafka and aiokafka test of their sticky assignors, restated as data.

Belongs here: groups, step by step, and what each step has to give. Does not: the random ones among
their tests (`test_properties`, `test_sticky`), or the check (`test_sticky_cases`).

Sources: `src/rdkafka_sticky_assignor.c` of confluentinc/librdkafka, whose cases follow Kafka's
AbstractStickyAssignorTest, and `tests/coordinator/test_assignors.py` of aio-libs/aiokafka. Where
they name one of several equal results, as which of its partitions a member gives up, the number of
partitions stands here.
"""

from dataclasses import dataclass, field

#: Topic to partitions, as `t:0,1 u:2`; or how many partitions there are in all.
Share = str | int


@dataclass(frozen=True)
class Step:
    """One rebalance.

    Parameters
    ----------
    topics
        Topic to number of partitions.
    reads
        Member to its topics, separated by blanks.
    gives
        What the members named have to get.
    claims
        Member to what it claims to own, and its generation; the others claim what the step before
        gave them, in generation 1.
    moves
        Owned partitions that go to somebody else; None: that is left open.
    """

    topics: dict[str, int]
    reads: dict[str, str]
    gives: dict[str, Share] = field(default_factory=dict)
    claims: dict[str, tuple[str, int]] = field(default_factory=dict)
    moves: int | None = None


def everybody(members: int, topics: str) -> dict[str, str]:
    """Let so many members, c1, c2, ..., read the same."""
    return {f"c{number}": topics for number in range(1, members + 1)}


T3 = {"t": 3}
SIX = {f"t{n}": 1 for n in range(1, 7)}
TRIANGLE = {f"t{n:02}": n for n in range(1, 20)}
STAIRS = {f"c{n:02}": " ".join([*TRIANGLE][:n]) for n in range(1, 20)}
FIFTEEN = {f"t{n:02}": n for n in range(1, 15)}
ALL_OF_FIFTEEN = " ".join(FIFTEEN)

CASES: dict[str, list[Step]] = {
    "no topic": [Step({}, {"c": ""}, {"c": 0})],
    "a topic that does not exist": [Step({}, {"c": "t"}, {"c": 0})],
    "a topic without partitions": [Step({"t": 0}, {"c": "t"}, {"c": 0})],
    "one consumer, one topic": [Step(T3, {"c": "t"}, {"c": "t:0,1,2"})],
    "only what is subscribed": [Step({"t": 3, "other": 3}, {"c": "t"}, {"c": "t:0,1,2"})],
    "one consumer, two topics": [Step({"t": 1, "u": 2}, {"c": "t u"}, {"c": "t:0 u:0,1"})],
    "two consumers, one partition": [Step({"t": 1}, everybody(2, "t"), {"c1": "t:0", "c2": 0})],
    "two consumers, two partitions": [
        Step({"t": 2}, everybody(2, "t"), {"c1": "t:0", "c2": "t:1"})
    ],
    "mixed subscriptions": [
        Step(
            {"t": 3, "u": 2},
            {"c1": "t", "c2": "t u", "c3": "t"},
            {"c1": "t:0,2", "c2": "u:0,1", "c3": "t:1"},
        )
    ],
    "two consumers, two topics, six partitions": [
        Step({"t": 3, "u": 3}, everybody(2, "t u"), {"c1": "t:0,2 u:1", "c2": "t:1 u:0,2"})
    ],
    "a consumer comes and another goes": [
        Step(T3, {"c1": "t"}, {"c1": "t:0,1,2"}),
        Step(T3, everybody(2, "t"), {"c1": 2, "c2": 1}, moves=1),
        Step(T3, {"c2": "t"}, {"c2": "t:0,1,2"}, moves=0),
    ],
    "what round robin does poorly": [
        Step(
            {"t1": 2, "t2": 1, "t3": 2, "t4": 1, "t5": 2},
            {"c1": "t1 t2 t3 t4 t5", "c2": "t1 t3 t5", "c3": "t1 t3 t5", "c4": "t1 t2 t3 t4 t5"},
            dict.fromkeys(("c1", "c2", "c3", "c4"), 2),
        )
    ],
    "a topic comes and another goes": [
        Step(T3, everybody(2, "t u"), {"c1": "t:0,2", "c2": "t:1"}),
        Step(
            {"t": 3, "u": 3}, everybody(2, "t u"), {"c1": "t:0,2 u:1", "c2": "t:1 u:0,2"}, moves=0
        ),
        Step({"u": 3}, everybody(2, "t u"), {"c1": "u:1", "c2": "u:0,2"}, moves=0),
    ],
    "topics are subscribed and given up": [
        Step({"t": 3, "u": 3}, everybody(2, "t"), {"c1": "t:0,2", "c2": "t:1"}),
        Step({"t": 3, "u": 3}, everybody(2, "t u"), {"c1": "t:0,2 u:1", "c2": "t:1 u:0,2"}),
        Step({"t": 3, "u": 3}, everybody(2, "u"), {"c1": "u:1", "c2": "u:0,2"}, moves=0),
    ],
    "of 19 nested subscriptions one goes": [
        Step(TRIANGLE, STAIRS),
        Step(TRIANGLE, {name: row for name, row in STAIRS.items() if name != "c10"}),
    ],
    "the ninth consumer of 20 partitions": [
        Step({"t": 20}, everybody(8, "t")),
        Step({"t": 20}, everybody(9, "t"), {"c9": 2}, moves=2),
    ],
    "the tenth consumer of 20 partitions": [
        Step({"t": 20}, everybody(9, "t")),
        Step({"t": 20}, everybody(10, "t"), dict.fromkeys(everybody(10, ""), 2), moves=2),
    ],
    "of eight equal subscriptions one goes": [
        Step(FIFTEEN, everybody(8, ALL_OF_FIFTEEN)),
        Step(
            FIFTEEN,
            {n: row for n, row in everybody(8, ALL_OF_FIFTEEN).items() if n != "c5"},
            moves=0,
        ),
    ],
    "a subscription grows": [
        Step({"t1": 1, "t2": 1, "t3": 1, "t4": 1}, {"c1": "t1", "c2": "t2 t3 t4"}),
        Step({"t1": 1, "t2": 1, "t3": 1, "t4": 1}, {"c0": "t1", "c1": "t1", "c2": "t2 t3 t4"}),
    ],
    "the leader of four goes": [
        Step(T3, everybody(4, "t"), {"c1": 1, "c2": 1, "c3": 1, "c4": 0}),
        Step(T3, {"c2": "t", "c3": "t", "c4": "t"}, {"c2": 1, "c3": 1, "c4": 1}, moves=0),
    ],
    "what must move does, along a chain": [
        Step(
            SIX,
            {"c1": "t1 t2", "c2": "t1 t2 t3 t4", "c3": "t2 t3 t4 t5 t6"},
            dict.fromkeys(("c1", "c2", "c3"), 2),
            {"c1": ("t1:0", 1), "c2": ("t2:0 t3:0", 1), "c3": ("t4:0 t5:0 t6:0", 1)},
            moves=2,
        )
    ],
    "three rebalances, and back": [
        Step({"t": 6}, {"c1": "t"}, {"c1": "t:0,1,2,3,4,5"}),
        Step({"t": 6}, everybody(2, "t"), {"c1": 3, "c2": 3}, moves=3),
        Step({"t": 6}, everybody(3, "t"), dict.fromkeys(("c1", "c2", "c3"), 2), moves=2),
        Step({"t": 6}, everybody(3, "t"), dict.fromkeys(("c1", "c2", "c3"), 2), moves=0),
        Step({"t": 6}, {"c2": "t", "c3": "t"}, {"c2": 3, "c3": 3}, moves=0),
        Step({"t": 6}, {"c3": "t"}, {"c3": "t:0,1,2,3,4,5"}, moves=0),
    ],
    "one of three topics is deleted": [Step({"t1": 1, "t3": 100}, {"c": "t1 t2 t3"}, {"c": 101})],
    "the only topic is deleted": [
        Step(T3, {"c": "t"}, {"c": "t:0,1,2"}),
        Step({}, {"c": "t"}, {"c": 0}),
    ],
    "two claim the same": [
        Step(
            {"t": 2},
            everybody(2, "t"),
            {"c1": 1, "c2": 1},
            {"c1": ("t:0,1", 1), "c2": ("t:0,1", 1)},
        )
    ],
    "whoever has its quota keeps it": [
        Step(
            {"t": 4},
            everybody(3, "t"),
            {"c1": "t:0,1", "c2": "t:2", "c3": "t:3"},
            {"c1": ("t:0,1", 1), "c2": ("t:2", 1)},
            moves=0,
        )
    ],
    "claims of an older generation": [
        Step(
            {"t": 3, "u": 3},
            everybody(2, "t u"),
            {"c1": "t:0,2 u:1", "c2": "t:1 u:0,2"},
            {"c1": ("t:0,2 u:1", 10), "c2": ("t:0,2 u:1", 9)},
            moves=0,
        )
    ],
    "claims of no generation": [
        Step(
            {"t": 3, "u": 3},
            everybody(2, "t u"),
            {"c1": "t:0,2 u:1", "c2": "t:1 u:0,2"},
            {"c1": ("t:0,2 u:1", 10), "c2": ("t:0,2 u:1", -1)},
            moves=0,
        )
    ],
    "one partition claimed twice in a generation": [
        Step(
            T3,
            everybody(3, "t"),
            {"c1": "t:1", "c2": "t:2", "c3": "t:0"},
            {"c1": ("t:0,1", 1), "c2": ("t:0,2", 1)},
        )
    ],
    "another partition claimed twice in a generation": [
        Step(
            T3,
            everybody(3, "t"),
            {"c1": "t:0", "c2": "t:2", "c3": "t:1"},
            {"c1": ("t:0,1", 1), "c2": ("t:1,2", 1)},
        )
    ],
    "the highest of three generations": [
        Step(
            {"t": 3, "u": 3, "v": 3},
            everybody(3, "t u v"),
            {"c1": "t:0 u:0 v:0", "c2": "t:1 u:1 v:1", "c3": "t:2 u:2 v:2"},
            {
                "c1": ("t:0 u:0 v:0", 10),
                "c2": ("t:1 u:1 v:1", 9),
                "c3": ("u:1 v:0,2", 8),
            },
            moves=0,
        )
    ],
    "a newcomer gets what nobody claims": [
        Step(
            {"s": 3, "t": 3, "u": 3, "v": 3},
            everybody(4, "s t u v"),
            {"c1": "t:2 u:1 v:0", "c2": "s:0 t:0 u:0", "c3": "t:1 u:2 v:2", "c4": "s:1,2 v:1"},
            {
                "c2": ("s:0 t:0 u:0", 9),
                "c3": ("t:1 u:2 v:2", 8),
                "c4": ("s:1,2 v:1", 7),
            },
            moves=0,
        )
    ],
    "who comes back gets its own again": [
        Step(
            {"t": 6},
            everybody(3, "t"),
            {"c1": "t:0,3", "c2": "t:1,4", "c3": "t:2,5"},
            {"c1": ("t:0,3", 1), "c2": ("t:0,1,2,3,4,5", 2), "c3": ("t:2,5", 1)},
            moves=4,
        )
    ],
    "conflicting claims of two generations": [
        Step(
            {"t": 6},
            everybody(3, "t"),
            dict.fromkeys(("c1", "c2", "c3"), 2),
            {"c1": ("t:0,1,4", 1), "c2": ("t:0,2,3", 1), "c3": ("t:3,4,5", 2)},
        )
    ],
}
