"""Sixty situations from public reports, and thirteen healthy groups with unusual habits.

Belongs here: what happened, and the right answers, which were written before the analysis was run
and without knowledge of its rules.

Rates are records per minute, and offsets begin at 50,000. Unless a policy is given, the objective
is a minute, and the horizon half an hour. Arrivals vary by about a tenth from minute to minute, and
a member processes records for at most 57 seconds per minute.
"""

from collections.abc import Mapping, Sequence
from math import inf, pi, sin
from typing import Any, Final

import numpy as np

from benchmarks.stories.answers import Right, Story
from benchmarks.stories.later import _silent, _Workers
from benchmarks.stories.scene import Scene, stories_of

VARIED: Final[list[Story]] = []
_story: Final = stories_of(VARIED)


class _Live(_Workers):
    """A group whose arrivals vary from minute to minute, in total and for each partition."""

    def __init__(
        self,
        topics: Mapping[str, int],
        members: Mapping[str, str],
        *,
        every: int = 1,
        policy: Mapping[str, Any] | None = None,
        busy_s: float = 57.0,
        jitter: float = 0.08,
    ) -> None:
        super().__init__(topics, members, every=every, policy=policy, busy_s=busy_s)
        self._jitter = jitter
        self._weather = np.random.default_rng(7)

    def run(self, minutes: int, *, sampled: bool = True) -> "_Live":
        if not minutes:
            super().run(0, sampled=sampled)
        for _ in range(minutes):
            usual = {name: part.arrives for name, part in self._partitions.items()}
            common = self._weather.lognormal(0.0, self._jitter / 2.0)
            for name, part in self._partitions.items():
                part.arrives = usual[name] * common * self._weather.lognormal(0.0, self._jitter)
            super().run(1, sampled=sampled)
            for name, part in self._partitions.items():
                part.arrives = usual[name]
        return self

    def leave(self, members: Mapping[str, str]) -> "_Live":
        """Replace the members, and their topics, in the input for `fairlead decide`."""
        self._members = {name: {"topics": topics.split()} for name, topics in members.items()}
        return self


def _of(numbers: Sequence[int], topic: str = "t") -> str:
    return " ".join(f"{topic}-{number}" for number in numbers)


def _dealt(members: Sequence[str], partitions: int, topic: str = "t") -> dict[str, str]:
    """Return a map from members to the partitions that the range assignor would give them."""
    shares = np.array_split(np.arange(partitions), len(members))
    return {member: _of(list(share), topic) for member, share in zip(members, shares, strict=True)}


# Stories about uneven load


@_story(
    "apache/beam/issues/30834",
    "Partitions of all topics are assigned in sorted order, so one worker owns most of a topic. "
    "For 20 minutes this topic has had three times its usual arrivals.",
    Right(
        "a gets 2,700 a minute and reads 1,500. c and d get 600 each: each has room for one busy "
        "partition.",
        "unbalanced",
        names="a",
        also="b",
        plan=True,
        places=True,
        more=(0, 1),
    ),
)
def _topic_spike_lands_on_one_worker() -> Scene:
    topics = {"clicks": 4, "orders": 4, "views": 4}
    scene = _Live(topics, dict.fromkeys("abcd", "clicks orders views"))
    scene.own({"a": "clicks-[012]", "b": "clicks-3 orders-[01]"})
    scene.own({"c": "orders-[23] views-0", "d": "views-[123]"})
    scene.set("*", arrives=200, seconds=0.038).set("clicks-*", arrives=300)
    scene.behind("*", 1_500).run(25)
    return scene.set("clicks-*", arrives=900).run(20)


@_story(
    "apache/kafka/pull/5390",
    "Every instance has four tasks, but one instance has all tasks of the heavy sub-topology.",
    Right(
        "a gets 2,000 a minute and reads 1,500; b and c get 240 each.",
        "unbalanced",
        names="a",
        plan=True,
        places=True,
        more=(0,),
    ),
)
def _equal_counts_unequal_topics() -> Scene:
    scene = _Live({"agg": 4, "raw": 8}, dict.fromkeys("abc", "agg raw"))
    scene.own({"a": "agg-*", "b": "raw-[0-3]", "c": "raw-[4-7]"})
    scene.set("agg-*", arrives=500, seconds=0.038).set("raw-*", arrives=60, seconds=0.038)
    return scene.behind("raw-*", 1_500).run(45)


@_story(
    "https://preproom.ai/code/oc-g394",
    "After a scale-out some instances own six partitions and others one. All partitions are "
    "equally loaded.",
    Right(
        "1,440 a minute arrive in six partitions, and an instance reads 1,200. With three "
        "partitions each, every instance would get 720.",
        "unbalanced",
        names="c0 c1",
        plan=True,
        places=True,
        more=(0,),
    ),
)
def _lopsided_after_a_scale_out() -> Scene:
    scene = _Live({"t": 30}, {f"c{number}": "t" for number in range(10)})
    ends = np.cumsum([6, 6, 4, 4, 2, 2, 2, 2, 1, 1])
    for number, end in enumerate(ends):
        first = ends[number - 1] if number else 0
        scene.own({f"c{number}": _of(range(first, end))})
    scene.set("t-*", arrives=240, seconds=0.0475)
    return scene.run(40)


@_story(
    "thomhurst/Dekaf/issues/891",
    "Producers without keys stay on one partition: three of six partitions get all records, and "
    "one consumer owns two of these.",
    Right(
        "a gets 1,800 a minute and reads 1,500; b gets nothing.",
        "unbalanced",
        names="a",
        plan=True,
        places=True,
        more=(0,),
    ),
)
def _three_sticky_producers() -> Scene:
    scene = _Live({"t": 6}, dict.fromkeys("abc", "t"))
    scene.own({"a": "t-[01]", "b": "t-[23]", "c": "t-[45]"})
    scene.set("t-*", seconds=0.038).set("t-0 t-1 t-4", arrives=900)
    return scene.run(40)


@_story(
    "IBM/sarama/issues/1188",
    "One slow partition delays all partitions of its consumer, because the client waits for all "
    "of them before it fetches again.",
    Right(
        "500 a minute arrive in each partition, and a reads 300 from each of its four. b has read "
        "1,000 from each of its own, and has room for two more.",
        "slow member|unbalanced",
        names="a",
        also=_of(range(4)),
        plan=True,
        more=(0,),
    ),
)
def _slow_partition_holds_up_its_neighbours() -> Scene:
    scene = _Live({"t": 8}, {"a": "t", "b": "t"}).own({"a": "t-[0-3]", "b": "t-[4-7]"})
    scene.set("t-*", arrives=500, reads=1_000).behind("t-*", 4_000).run(20)
    return scene.set("t-[0-3]", reads=300).run(30)


@_story(
    "https://scalemind.dev/java/kafka/distributed-systems/"
    "kafka-consumer-rebalance-zero-downtime-part-3/",
    "A new version is deployed to one of four instances first, and takes four times as long for "
    "each record.",
    Right(
        "1,000 a minute arrive for d2, which reads 712; the others read 2,850 while they had a "
        "backlog.",
        "slow member",
        names="d2",
        also="t-6 t-7",
        plan=True,
        more=(0,),
    ),
)
def _canary_is_slower() -> Scene:
    scene = _Live({"t": 8}, dict.fromkeys(("a", "b", "c", "d2"), "t"))
    scene.own({"a": "t-[01]", "b": "t-[23]", "c": "t-[45]", "d1": "t-[67]"})
    scene.set("t-*", arrives=500, seconds=0.02).behind("t-*", 5_000).run(20)
    scene.set("t-[67]", owner=None).run(1)
    scene.own({"d2": "t-[67]"}).set("t-[67]", seconds=0.08)
    return scene.run(30)


@_story(
    "open-telemetry/opentelemetry-collector-contrib/issues/37026",
    "Only one of two pods can connect: it owns all three partitions and does not keep up.",
    Right(
        "2,400 a minute arrive, and the pod reads 2,000. With a second pod, the busier one would "
        "get 1,600.",
        "overloaded",
        more=(1,),
    ),
)
def _one_of_two_pods_connects() -> Scene:
    scene = _Live({"t": 3}, {"otel-1": "t"}).own({"otel-1": "t-*"})
    return scene.set("t-*", arrives=800, seconds=0.0285).run(40)


# Stories about one partition with too many records


@_story(
    "https://preproom.ai/code/oc-g386",
    "A customer turned on verbose logging half an hour ago: its partition gets seven times the "
    "usual arrivals. Each partition has its own instance.",
    Right(
        "2,800 a minute arrive in t-4, and an instance reads at most 1,900.",
        "hot partition",
        names="t-4",
        also="c4",
        more=(None,),
    ),
)
def _customer_turns_on_verbose_logging() -> Scene:
    scene = _Live({"t": 8}, {f"c{number}": "t" for number in range(8)})
    scene.own({f"c{number}": f"t-{number}" for number in range(8)})
    scene.set("t-*", arrives=400, seconds=0.03).behind("t-*", 6_000).run(30)
    return scene.set("t-4", arrives=2_800).run(30)


@_story(
    "https://preproom.ai/code/oc-g264",
    "A handler makes a slow call for records of large tenants, which are in two partitions. An "
    "instance processes its partitions in parallel, so the lag of the others stays near zero.",
    Right(
        "t-1 and t-6 are read at a third of their arrivals; their owners keep up with all others.",
        "throttled partition",
        names="t-1 t-6",
        more=(None, 0),
    ),
)
def _large_tenants_in_two_partitions() -> Scene:
    scene = _Live({"t": 12}, dict.fromkeys("abcd", "t"))
    scene.own(_dealt("abcd", 12))
    scene.set("t-*", arrives=600, reads=3_000).run(15)
    return scene.set("t-1 t-6", reads=200).run(40)


@_story(
    "opensource4you/astraea/issues/1567",
    "Four partitions with Zipf-distributed load and twelve consumers, eight of which are idle.",
    Right(
        "9,000 a minute arrive in t-0, and its consumer, which owns nothing else, reads 7,000.",
        "hot partition",
        names="t-0",
        also="c0",
        more=(None,),
    ),
)
def _zipf_and_idle_consumers() -> Scene:
    scene = _Live({"t": 4}, {f"c{number}": "t" for number in range(12)})
    scene.own({f"c{number}": f"t-{number}" for number in range(4)})
    scene.set("t-*", seconds=57.0 / 7_000).set("t-0", arrives=9_000).set("t-1", arrives=4_500)
    scene.set("t-2", arrives=3_000).set("t-3", arrives=2_200).behind("t-[123]", 20_000)
    return scene.run(40)


@_story(
    "jaegertracing/jaeger/issues/5683",
    "Three partitions and three ingesters: lag grows in all partitions, in one much faster.",
    Right(
        "2,400, 1,500 and 1,500 a minute arrive in the partitions, and each ingester reads 1,200.",
        "overloaded|hot partition",
        more=(None,),
        never=("slow",),
    ),
)
def _all_grow_one_faster() -> Scene:
    scene = _Live({"t": 3}, dict.fromkeys("abc", "t")).own({"a": "t-0", "b": "t-1", "c": "t-2"})
    scene.set("t-*", arrives=1_500, seconds=0.0475).set("t-0", arrives=2_400)
    return scene.run(40)


@_story(
    "confluentinc/librdkafka/issues/1854",
    "The first partition of a consumer always fills its queue, so the others are hardly ever "
    "fetched.",
    Right(
        "t-0 is always read to its end; t-1 and t-2 are read at an eighth of their arrivals.",
        "throttled partition|unbalanced",
        names="",
        also="a t-0 t-1 t-2",
        plan=None,
        never=("stuck",),
    ),
)
def _starved_behind_a_full_queue() -> Scene:
    scene = _Live({"t": 6}, {"a": "t", "b": "t"}).own({"a": "t-[012]", "b": "t-[345]"})
    scene.set("t-*", arrives=300, reads=3_000).set("t-0", arrives=2_400)
    return scene.set("t-[12]", reads=40).run(45)


@_story(
    "grafana/tempo/pull/6778",
    "A block builder reads a limited number of bytes in each cycle of five minutes. One of three "
    "partitions gets more than twice this limit.",
    Right(
        "2,200 a minute arrive in t-0; its builder owns no other partition, and reads 1,000.",
        "hot partition|overloaded|throttled partition",
        names="",
        also="t-0 a",
        more=(None, 0),
    ),
)
def _cap_for_each_cycle() -> Scene:
    scene = _Live({"t": 3}, dict.fromkeys("abc", "t")).own({"a": "t-0", "b": "t-1", "c": "t-2"})
    scene.set("t-*", arrives=400, reads=1_000, commit_every=5).set("t-0", arrives=2_200)
    return scene.run(90)


@_story(
    "kedacore/keda/issues/4791",
    "A topic has one partition and three consumers, and its lag keeps growing.",
    Right(
        "One consumer reads as fast as it can; the other two have no partition.",
        "hot partition|overloaded",
        more=(None,),
    ),
)
def _single_partition_three_consumers() -> Scene:
    scene = _Live({"t": 1}, dict.fromkeys("abc", "t")).own({"b": "t-0"})
    return scene.set("t-0", arrives=2_000, seconds=0.04).run(40)


# Stories in which more records arrive than the group can process


@_story(
    "redpanda-data/connect/issues/1169",
    "The whole pipeline may call a service 1,800 times a minute. A third instance joined 25 "
    "minutes ago, and throughput has not risen.",
    Right(
        "2,400 a minute arrive. Two instances read 1,800 in total, and so do three.",
        "overloaded|throttled partition",
        never=("slow member",),
    ),
)
def _rate_limit_for_the_whole_pipeline() -> Scene:
    scene = _Live({"t": 6}, dict.fromkeys("abc", "t")).own({"a": "t-[012]", "b": "t-[345]"})
    scene.set("t-*", arrives=400, reads=300).run(25)
    return scene.own({"a": "t-[01]", "b": "t-[23]", "c": "t-[45]"}).run(25)


@_story(
    "Altinity/clickhouse-sink-connector/issues/598",
    "A sink writes a batch within seconds, then waits exactly five minutes. More records arrive "
    "in this time than fit into a batch.",
    Right(
        "10,000 records arrive between two commits, and each commit covers 8,000.",
        "overloaded|throttled partition",
    ),
)
def _waits_five_minutes_between_batches() -> Scene:
    scene = _Live({"t": 4}, {"sink-0": "t"}).own({"sink-0": "t-*"})
    return scene.set("t-*", arrives=500, reads=400, commit_every=5).run(120)


@_story(
    "https://anshulbisen.pages.dev/blog/kafka-consumer-lag-crisis-event-driven-trust",
    "Lag has grown for two weeks, too slowly to notice within an hour: the delay is now 45 "
    "minutes.",
    Right(
        "The group is 45 minutes behind, reads all the time, and does not catch up.",
        "overloaded",
        more=(1, 2, 3),
    ),
)
def _behind_for_two_weeks() -> Scene:
    scene = _Live({"t": 6}, dict.fromkeys("abc", "t"))
    scene.own({"a": "t-[01]", "b": "t-[23]", "c": "t-[45]"})
    scene.set("t-*", arrives=186, seconds=57.0 / 371.0).behind("t-*", 8_300)
    return scene.run(60)


@_story(
    "tulios/kafkajs/issues/1613",
    "Sixty topics with one partition each, and two consumers. At the peak, more records arrive "
    "than the consumers can read.",
    Right(
        "3,600 a minute arrive, and a consumer reads 1,500: a third consumer is needed.",
        "overloaded",
        more=(1,),
    ),
)
def _sixty_topics_at_the_peak() -> Scene:
    topics = {f"q{number:02}": 1 for number in range(60)}
    scene = _Live(topics, {member: " ".join(topics) for member in "ab"})
    scene.own({"a": "q[012]*", "b": "q[345]*"})
    scene.set("q*", arrives=22, seconds=0.038).run(30)
    return scene.set("q*", arrives=60).run(30)


@_story(
    "influxdata/telegraf/issues/6354",
    "Every ten seconds an agent takes 1,000 records and waits until they are flushed: it reads at "
    "most 6,000 a minute.",
    Right(
        "7,600 a minute arrive for each of two agents; three or four agents are needed.",
        "overloaded",
        more=(1, 2),
    ),
)
def _a_thousand_records_each_flush() -> Scene:
    scene = _Live({"t": 8}, {"a": "t", "b": "t"}).own({"a": "t-[0-3]", "b": "t-[4-7]"})
    return scene.set("t-*", arrives=1_900, seconds=0.0095).run(40)


@_story(
    "akka/alpakka-kafka/issues/549",
    "A consumer that is behind fetches the same data again and again. The group kept up until a "
    "burst half an hour ago; since then it reads two thirds of its arrivals.",
    Right(
        "Since the burst, all three consumers read 800 of 1,200 a minute, and fall further behind.",
        "overloaded",
        never=("slow member",),
    ),
)
def _slower_since_it_is_behind() -> Scene:
    scene = _Live({"t": 6}, dict.fromkeys("abc", "t"))
    scene.own({"a": "t-[01]", "b": "t-[23]", "c": "t-[45]"})
    scene.set("t-*", arrives=600, reads=1_500).behind("t-*", 3_000).run(20)
    for partition in scene.matching("t-*"):
        partition.end += 6_000
    return scene.set("t-*", reads=400).run(30)


@_story(
    "opensearch-project/data-prepper/issues/2147",
    "Two instances process less than one: since the second instance joined, they forward records "
    "to each other and the lag grows.",
    Right(
        "a read 5,000 a minute as the only member. Now 1,500 arrive for each of a and b, and each "
        "reads 1,000.",
        "overloaded",
    ),
)
def _two_do_less_than_one() -> Scene:
    scene = _Live({"t": 6}, {"a": "t", "b": "t"}).own({"a": "t-*"})
    scene.set("t-*", arrives=500, seconds=0.0114).behind("t-*", 3_000).run(25)
    scene.own({"b": "t-[345]"}).set("t-*", seconds=0.057)
    return scene.run(30)


@_story(
    "confluentinc/confluent-kafka-javascript/issues/247",
    "Consumers read a fast topic and a slow topic, and batches of the slow topic delay the fast "
    "one. Both consumers fall behind with both topics.",
    Right(
        "Both consumers fall behind with both topics: neither has spare capacity.",
        "overloaded|throttled partition|hot partition",
    ),
)
def _slow_topic_blocks_the_fast_one() -> Scene:
    scene = _Live({"fast": 2, "slow": 2}, {"a": "fast slow", "b": "fast slow"})
    scene.own({"a": "*-0", "b": "*-1"})
    scene.set("fast-*", arrives=1_200, reads=400).set("slow-*", arrives=60, reads=40)
    return scene.run(45)


@_story(
    "quarkusio/quarkus/issues/22561",
    "A record takes eight seconds. Five records a minute arrive in each partition, and each "
    "consumer owns two partitions.",
    Right(
        "A consumer processes seven records a minute, and ten arrive: it has capacity for only "
        "one partition.",
        "overloaded",
        more=(4,),
        never=("stuck",),
    ),
)
def _eight_seconds_a_record() -> Scene:
    scene = _Live({"t": 8}, dict.fromkeys("abcd", "t")).own(_dealt("abcd", 8))
    return scene.set("t-*", arrives=5, seconds=8.0).run(60)


# Stories about partitions without progress


@_story(
    "IBM/sarama/issues/2090",
    "Consumers fetch from follower replicas. After a replica restarts, they neither resume there "
    "nor switch to the leader: three partitions of three consumers stop.",
    Right(
        "t-0, t-3 and t-6 have had no commit for 25 minutes; their owners commit the others.",
        "stuck partition",
        names="t-0 t-3 t-6",
        more=(None, 0),
    ),
)
def _follower_fetch_halts() -> Scene:
    scene = _Live({"t": 9}, dict.fromkeys("abc", "t")).own(_dealt("abc", 9))
    scene.set("t-*", arrives=400, seconds=0.01).run(15)
    return scene.limit("t-0 t-3 t-6", 0).run(25)


@_story(
    "confluentinc/parallel-consumer/issues/857",
    "After a leader election, every consumer stops reading some of its partitions; the group is "
    "stable and members send heartbeats.",
    Right(
        "Nine of 24 partitions have had no commit for 20 minutes; their owners commit the others.",
        "stuck partition",
        names=_of((1, 2, 5, 8, 9, 13, 16, 20, 23)),
        more=(None, 0),
    ),
)
def _nine_of_twenty_four_stand() -> Scene:
    scene = _Live({"t": 24}, dict.fromkeys("abcd", "t")).own(_dealt("abcd", 24))
    scene.set("t-*", arrives=200, seconds=0.01).run(20)
    return scene.limit(_of((1, 2, 5, 8, 9, 13, 16, 20, 23)), 0).run(20)


@_story(
    "open-telemetry/opentelemetry-collector-contrib/pull/47246",
    "A partition is paused after an error and never resumed. This has happened three times within "
    "half an hour.",
    Right(
        "t-1, t-3 and t-5 have had no commit for 32, 20 and 8 minutes.",
        "stuck partition",
        names="t-1 t-3 t-5",
        more=(None, 0),
    ),
)
def _paused_one_after_another() -> Scene:
    scene = _Live({"t": 8}, {"a": "t", "b": "t"}).own({"a": "t-[0-3]", "b": "t-[4-7]"})
    scene.set("t-*", arrives=300, seconds=0.01).run(10)
    scene.limit("t-1", 0).run(12)
    scene.limit("t-3", 0).run(12)
    return scene.limit("t-5", 0).run(8)


@_story(
    "confluentinc/librdkafka/issues/5586",
    "A partition moves, but its new owner never gets the committed offset, and never fetches the "
    "partition.",
    Right(
        "t-4 has had no commit since it moved to c, which commits its two other partitions.",
        "stuck partition",
        names="t-4",
        also="c",
        plan=None,
        more=(None, 0),
    ),
)
def _never_fetched_since_it_moved() -> Scene:
    scene = _Live({"t": 9}, dict.fromkeys("abc", "t"))
    scene.own({"a": "t-[012]", "b": "t-[3456]", "c": "t-[78]"})
    scene.set("t-*", arrives=400, seconds=0.01).run(20)
    scene.own({"c": "t-4"})
    return scene.limit("t-4", 0).run(20)


@_story(
    "confluentinc/parallel-consumer/issues/409",
    "After an offset out of range, a consumer continues at the latest record. It keeps committing "
    "its old offset, which is before the first offset of the log.",
    Right(
        "The committed offset of t-1 has not moved for 40 minutes, and is before the first offset "
        "of the log.",
        "stuck partition|unknown",
        names="",
        also="t-1 a",
        more=(None, 0),
    ),
)
def _commits_below_the_log() -> Scene:
    scene = _Live({"t": 6}, {"a": "t", "b": "t"}).own({"a": "t-[012]", "b": "t-[345]"})
    scene.set("t-*", arrives=400, seconds=0.01).run(10)
    scene.set("t-1", commits=False, keeps=8_000)
    return scene.run(40)


@_story(
    "opensearch-project/data-prepper/issues/3231",
    "Partitions whose first offset is not 0 are read but never committed, because the client "
    "counts from 0. Other partitions are committed.",
    Right(
        "t-2 and t-3 have no committed offset, although records arrive; their owners commit "
        "others.",
        "stuck partition|unknown",
        names="",
        also="t-2 t-3 a b",
        more=(None, 0),
    ),
)
def _no_commit_where_the_log_was_trimmed() -> Scene:
    scene = _Live({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-0 t-2", "b": "t-1 t-3"})
    scene.set("t-*", arrives=200, seconds=0.01)
    scene.set("t-[23]", begin=833, end=4_000, position=4_000, committed=None, commits=False)
    return scene.run(35)


@_story(
    "robinhood/faust/issues/401",
    "A worker stops committing a partition at the first gap in its offsets. Its three partitions "
    "reach a gap one after another; partitions of other workers have no gaps.",
    Right(
        "b last committed t-3 in minute 10, t-4 in minute 16 and t-5 in minute 21.",
        "unknown|stuck partition",
        names="",
        also="b t-3 t-4 t-5",
        more=(None, 0),
    ),
)
def _gaps_silence_a_worker() -> Scene:
    scene = _Live({"t": 9}, dict.fromkeys("abc", "t")).own(_dealt("abc", 9))
    scene.set("t-*", arrives=300, seconds=0.01).run(10)
    scene.set("t-3", commits=False).run(6)
    scene.set("t-4", commits=False).run(5)
    return scene.set("t-5", commits=False).run(14)


@_story(
    "zendesk/ruby-kafka/pull/566",
    "Records of one partition fail, and the pause before each retry has grown to a minute. Other "
    "partitions are not affected.",
    Right(
        "60 records a minute arrive in t-2, and one is read.",
        "throttled partition|stuck partition",
        names="t-2",
        more=(None, 0),
    ),
)
def _a_record_a_minute() -> Scene:
    scene = _Live({"t": 6}, {"a": "t", "b": "t"}).own({"a": "t-[012]", "b": "t-[345]"})
    scene.set("t-*", arrives=60, seconds=0.02).run(12)
    return scene.limit("t-2", 1).run(35)


@_story(
    "redpanda-data/connect/issues/3410",
    "A second instance joins and reads its half of the partitions; the first instance stops "
    "reading the half that it kept.",
    Right(
        "a has committed nothing since b joined, 18 minutes ago.",
        "unknown",
        names="a",
        more=(None, 0),
    ),
)
def _first_instance_stops_when_the_second_joins() -> Scene:
    scene = _Live({"t": 6}, {"a": "t", "b": "t"}).own({"a": "t-*"})
    scene.set("t-*", arrives=300, seconds=0.01).run(15)
    scene.own({"b": "t-[345]"})
    return scene.limit("t-[012]", 0).run(18)


@_story(
    "influxdata/telegraf/issues/19738",
    "One of two outputs of every agent is down, and the agents take no further records.",
    Right("No member has committed anything for 14 minutes.", "unknown", more=(None, 0)),
)
def _a_dead_output_stalls_all() -> Scene:
    scene = _Live({"t": 6}, dict.fromkeys("abc", "t")).own(_dealt("abc", 6))
    scene.set("t-*", arrives=600, seconds=0.01).run(30)
    return scene.limit("t-*", 0).run(14)


@_story(
    "confluentinc/librdkafka/issues/843",
    "After a change of leaders, two partitions are not fetched for two minutes, until requests to "
    "the old leader time out.",
    Right(
        "Two partitions have no commit in two samples; all others are read to their ends.",
        "healthy|recovering|unknown",
        never=("stuck",),
    ),
)
def _two_minutes_of_offset_wait() -> Scene:
    scene = _Live({"t": 9}, dict.fromkeys("abc", "t")).own(_dealt("abc", 9))
    scene.set("t-*", arrives=400, seconds=0.01).run(20)
    return scene.limit("t-2 t-5", 0).run(2)


@_story(
    "confluentinc/librdkafka/issues/807",
    "Consumers of the smallest topic get the end-of-partition event, although records wait in its "
    "partitions. They read the large topic normally.",
    Right(
        "The four partitions of `small` have had no commit for half an hour, with both of their "
        "owners.",
        "stuck partition",
        names="small-0 small-1 small-2 small-3",
        more=(None, 0),
    ),
)
def _the_smallest_topic_stands() -> Scene:
    scene = _Live({"large": 4, "small": 4}, {"a": "large small", "b": "large small"})
    scene.own({"a": "large-[01] small-[01]", "b": "large-[23] small-[23]"})
    scene.set("large-*", arrives=1_500, seconds=0.005).set("small-*", arrives=5, seconds=0.005)
    scene.run(20)
    return scene.limit("small-*", 0).run(30)


@_story(
    "apache/iceberg/issues/13067",
    "A coordinator reads a control topic: two partitions are read to their ends, and the third "
    "falls further and further behind.",
    Right(
        "600 a minute arrive in each partition. Their consumer reads 440 from t-1, and all from "
        "the others.",
        "throttled partition",
        names="t-1",
        more=(None, 0),
    ),
)
def _one_of_three_control_partitions() -> Scene:
    scene = _Live({"t": 3}, {"coordinator": "t"}).own({"coordinator": "t-*"})
    return scene.set("t-*", arrives=600, reads=6_000).set("t-1", reads=440).run(50)


@_story(
    "dpkp/kafka-python/issues/1623",
    "A consumer with partitions of many topics hangs in a deadlock. Only three of its twenty "
    "partitions get records.",
    Right(
        "b has committed nothing for 20 minutes, although records arrive in three of its "
        "partitions.",
        "unknown",
        names="b",
        more=(None, 0),
    ),
)
def _deadlock_with_quiet_partitions() -> Scene:
    topics = {f"q{number:02}": 2 for number in range(20)}
    scene = _Live(topics, {member: " ".join(topics) for member in "ab"})
    scene.own({"a": "q*-0", "b": "q*-1"})
    scene.set("q03-* q07-* q15-*", arrives=120, seconds=0.02).run(25)
    return scene.limit("q*-1", 0).run(20)


# Stories of groups without owners, members or commits


@_story(
    "akka/alpakka-kafka/issues/1304",
    "Brokers restart; afterwards the group has its members again, but no assignment.",
    Right(
        "For 25 minutes records have arrived in partitions without an owner, although a and b "
        "subscribe.",
        "!healthy",
        plan=True,
        places=True,
        says=("owner",),
    ),
)
def _no_assignment_after_broker_restart() -> Scene:
    scene = _Live({"t": 6}, {"a": "t", "b": "t"}).own({"a": "t-[012]", "b": "t-[345]"})
    scene.set("t-*", arrives=300, seconds=0.01).run(15)
    return scene.set("t-*", owner=None).run(25)


@_story(
    "seglo/kafka-lag-exporter/issues/36",
    "All instances have been down for an hour, so the group has no members. Records keep arriving.",
    Right(
        "18,000 records wait in each partition, and the group has no member to read them.",
        "!healthy|recovering",
    ),
)
def _everybody_is_gone() -> Scene:
    scene = _Live({"t": 4}, {"a": "t", "b": "t"})
    scene.own({"a": "t-[01]", "b": "t-[23]"}).set("t-*", arrives=300, seconds=0.01).run(20)
    scene.set("t-*", owner=None)
    return scene.leave({}).run(60)


@_story(
    "StarRocks/starrocks/issues/31233",
    "A database reads a topic without joining a group. It commits the offsets of loaded records: "
    "two thirds of the arrivals.",
    Right(
        "Commits fall behind by 200 records a minute in each partition. No plan can affect the "
        "loader: it is not a member.",
        "!healthy|recovering",
    ),
)
def _loads_by_itself_and_falls_behind() -> Scene:
    scene = _Live({"t": 3}, {}).own({"loader": "t-*"}).set("t-*", arrives=600, reads=400)
    scene.owners_shown = False
    return scene.run(60)


@_story(
    "apache/iceberg/issues/17634",
    "A connector was paused for a day and is resumed. In the hour since then, its tasks have "
    "committed nothing.",
    Right(
        "No task commits, so it is unknown whether they read.",
        "unknown",
        never=("overloaded",),
    ),
)
def _resumed_and_silent() -> Scene:
    scene = _Live({"t": 6}, dict.fromkeys("abc", "t"))
    scene.set("t-*", end=800_000, position=800_000, committed=450_000, arrives=250)
    scene.own(_dealt("abc", 6)).set("t-*", commits=False, seconds=0.001)
    return scene.run(60)


@_story(
    "seglo/kafka-lag-exporter/issues/110",
    "A broker restarted eight minutes ago. Since then, the exporter cannot read the group's "
    "commits.",
    Right(
        "The group kept up while its commits could be read; nothing is known since then.",
        "unknown|healthy",
        never=("stuck", "no committed offset"),
    ),
)
def _commits_unreadable_since_a_restart() -> Scene:
    scene = _Live({"t": 6}, dict.fromkeys("abc", "t")).own(_dealt("abc", 6))
    scene.set("t-*", arrives=600, seconds=0.01).run(30)
    scene.commits_readable = False
    return scene.run(8)


@_story(
    "ConduitIO/conduit-connector-kafka/issues/220",
    "A connector commits after every 1,000 records of a partition, and five a minute arrive in "
    "each: hours pass without a commit.",
    Right(
        "A few hundred records are less than a batch; no partition is worse than the others.",
        "unknown|healthy",
        never=("stuck", "overloaded"),
    ),
)
def _hours_without_a_full_batch() -> Scene:
    scene = _Live({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-[01]", "b": "t-[23]"})
    for number, waiting in enumerate((120, 310, 55, 240)):
        scene.set(f"t-{number}", end=50_000 + waiting, position=50_000 + waiting)
    return scene.set("t-*", arrives=5, seconds=0.01, commit_by=1_000).run(100)


@_story(
    "apache/iceberg/issues/11818",
    "A sink commits for a group that has no members. In each partition, the commit is one record "
    "before the end, and nothing arrives.",
    Right(
        "The lag of one record per partition, unchanged for an hour, is a transaction's control "
        "record.",
        "healthy|unknown",
        never=("stuck", "overloaded"),
    ),
)
def _one_record_short_without_members() -> Scene:
    scene = _Live({"t": 4}, {})
    for number, end in enumerate((46, 42, 36, 33)):
        scene.set(f"t-{number}", end=end, position=end - 1, committed=end - 1)
    return scene.run(60)


@_story(
    "apache/kafka/pull/13178",
    "Every minute, a mirror translates the commits of a group to a standby cluster. There the "
    "group has no members, and some commits are beyond the end of the log.",
    Right(
        "Commits advance with the end offsets. No consumer reads on the standby cluster, and "
        "nothing is wrong.",
        "healthy|unknown",
        never=("stuck", "overloaded"),
    ),
)
def _standby_cluster() -> Scene:
    scene = _Live({"t": 4}, {}).own({"mirror": "t-*"})
    scene.owners_shown = False
    scene.set("t-*", arrives=600, reads=6_000).set("t-[13]", unseen=40)
    return scene.run(45)


@_story(
    "seglo/kafka-lag-exporter/issues/478",
    "A topic is deleted and created again with three partitions instead of six. Consumers start "
    "again and keep up.",
    Right(
        "Since then, every sample shows all three partitions read to their ends.",
        "healthy",
        never=("stuck",),
    ),
)
def _made_again_with_fewer_partitions() -> Scene:
    scene = _Live({"t": 6}, {"a": "t", "b": "t"}).own({"a": "t-[012]", "b": "t-[345]"})
    scene.set("t-*", arrives=300, seconds=0.01).run(15)
    scene.set("t-[345]", exists=False)
    scene.set("t-[012]", end=0, position=0, committed=0).own({"a": "t-[02]", "b": "t-1"})
    scene.run(20)

    def three_now(question: dict[str, Any]) -> None:
        question["topics"]["t"] = 3
        for sample in question["snapshots"][16:]:
            for column in ("begin", "end", "committed", "owners"):
                sample[column]["t"] = sample[column]["t"][:3]

    return scene.edit(three_now)


@_story(
    "seglo/kafka-lag-exporter/issues/179",
    "A topic is deleted while consumers still subscribe to it. They continue to read their other "
    "topic.",
    Right(
        "The existing partitions are read to their ends.",
        "healthy",
        never=("stuck",),
    ),
)
def _deleted_topic_in_the_subscription() -> Scene:
    topics = "live gone"
    scene = _Live({"live": 4, "gone": 2}, {"a": topics, "b": topics})
    scene.own({"a": "live-[01] gone-0", "b": "live-[23] gone-1"})
    scene.set("*", arrives=300, seconds=0.01).run(15)
    scene.set("gone-*", exists=False).run(20)

    def without(question: dict[str, Any]) -> None:
        question["topics"] = {"live": 4}
        for sample in question["snapshots"][16:]:
            for column in ("begin", "end", "committed", "owners"):
                del sample[column]["gone"]

    return scene.edit(without)


# Stories of groups that are temporarily behind, or only seem to be


@_story(
    "https://preproom.ai/code/oc-g396",
    "A sink was down for longer than the topic's retention. It came back six minutes ago, starts "
    "at the oldest remaining records, and reads five times as fast as records arrive.",
    Right(
        "Of ten minutes to catch up, four are left.",
        "recovering",
        more=(0,),
        never=("stuck",),
    ),
)
def _back_after_more_than_retention() -> Scene:
    scene = _Live({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-[01]", "b": "t-[23]"})
    scene.set("t-*", arrives=300, seconds=0.019, begin=38_000, keeps=12_000).run(15)
    scene.limit("t-*", 0).run(60)
    return scene.limit("t-*", inf).run(6)


@_story(
    "https://preproom.ai/code/oc-g122",
    "A team resets its group to replay 30 days: two million records per partition. The consumers "
    "read 3,000 a minute from each partition. 25 minutes have passed.",
    Right(
        "The backlog shrinks equally in all partitions and needs half a day; no assignment "
        "shortens it.",
        "recovering|overloaded",
        never=("stuck",),
    ),
)
def _replay_of_thirty_days() -> Scene:
    scene = _Live({"t": 6}, dict.fromkeys("abc", "t")).own(_dealt("abc", 6))
    scene.set("t-*", end=3_000_000, position=3_000_000, committed=3_000_000)
    scene.set("t-*", arrives=300, seconds=0.0095).run(20)
    return scene.behind("t-*", 2_000_000).run(25)


@_story(
    "confluentinc/librdkafka/issues/2630",
    "A consumer continues to read but cannot commit for 20 minutes. It is restarted, and the "
    "other two read its records again, in addition to their own.",
    Right(
        "Of twelve minutes to catch up, three have passed.",
        "recovering",
        more=(0,),
        never=("stuck",),
    ),
)
def _commits_failed_and_all_is_read_again() -> Scene:
    scene = _Live({"t": 6}, {"a": "t", "b": "t"})
    scene.own({"a": "t-[01]", "b": "t-[23]", "c": "t-[45]"})
    scene.set("t-*", arrives=600, seconds=0.0195).run(20)
    scene.set("t-[45]", commits=False).run(20)
    for partition in scene.matching("t-[45]"):
        partition.position = partition.committed or 0
    scene.set("t-[45]", commits=True).own({"a": "t-4", "b": "t-5"})
    return scene.run(3)


@_story(
    "criteo/garmadon/pull/174",
    "After each rebalance, the new owners pause their partitions and read the footers of their "
    "files for five minutes. The last rebalance was four minutes ago.",
    Right(
        "No member has committed since the rebalance; after the previous one, it was the same.",
        "unknown|recovering|healthy",
        never=("stuck", "overloaded"),
    ),
)
def _reads_footers_after_a_rebalance() -> Scene:
    scene = _Live({"t": 6}, dict.fromkeys("abc", "t")).own(_dealt("abc", 6))
    scene.set("t-*", arrives=400, seconds=0.01).run(20)
    for order in ("bca", "cab"):
        scene.own(_dealt(order, 6)).limit("t-*", 0).run(5 if order == "bca" else 4)
        if order == "bca":
            scene.limit("t-*", inf).run(25)
    return scene


@_story(
    "apache/druid/issues/11414",
    "Every hour tasks restart, and nothing is read for five minutes; then they catch up. This "
    "time they began to catch up two minutes ago.",
    Right(
        "As in earlier hours, 3,000 a minute are read and 600 arrive: a minute or two is left.",
        "recovering|healthy",
        more=(0,),
        never=("stuck",),
    ),
)
def _tasks_roll_each_hour() -> Scene:
    scene = _Live({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-[01]", "b": "t-[23]"})
    scene.set("t-*", arrives=600, seconds=0.019)
    for minutes in (55, 55, 2):
        scene.limit("t-*", 0).run(5)
        scene.limit("t-*", inf).run(minutes)
    return scene


@_story(
    "vectordotdev/vector/issues/9587",
    "The number of instances is doubled, and the committed offsets of all moved partitions go "
    "back by 8,000 records, which are read again. Two minutes have passed.",
    Right(
        "Each new instance reads 2,850 a minute, and 1,200 arrive: it needs six more minutes.",
        "recovering",
        more=(0,),
        never=("stuck",),
    ),
)
def _commits_go_back_at_a_scale_out() -> Scene:
    scene = _Live({"t": 8}, dict.fromkeys("abcd", "t")).own({"a": "t-[0-3]", "b": "t-[4-7]"})
    scene.set("t-*", arrives=600, seconds=0.02).run(25)
    scene.own({"c": "t-[23]", "d": "t-[67]"}).behind("t-[2367]", 8_000)
    return scene.run(2)


@_story(
    "akka/alpakka-kafka/issues/808",
    "Nothing arrives. Now and then a committed offset goes back by 1,500 records, which are read "
    "again within a minute.",
    Right(
        "In the last samples, every partition is read to its end.",
        "healthy",
        never=("stuck",),
    ),
)
def _jumps_back_though_nothing_arrives() -> Scene:
    scene = _Live({"t": 7}, {f"c{number}": "t" for number in range(7)})
    scene.own({f"c{number}": f"t-{number}" for number in range(7)})
    scene.set("t-*", arrives=400, seconds=0.02).run(15)
    scene.set("t-*", arrives=0).run(2)
    for number in (1, 4, 6, 1, 3, 0, 4):
        scene.behind(f"t-{number}", 1_500)
        scene["t-0"].seek(scene["t-0"].position)
        scene.run(4)
    return scene


@_story(
    "smallrye/smallrye-reactive-messaging/issues/1828",
    "Commits wait for the oldest unacknowledged record: they stop for six to nine minutes, then "
    "catch up at once. Four minutes ago, one of two consumers stopped committing again.",
    Right(
        "Three earlier pauses were longer, and each ended with a commit at the end of the log.",
        "healthy|recovering|unknown",
        never=("stuck", "overloaded"),
    ),
)
def _lag_drops_all_at_once() -> Scene:
    scene = _Live({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-[01]", "b": "t-[23]"})
    scene.set("t-*", arrives=80, seconds=0.05)
    for flowing, waiting in ((9, 7), (6, 9), (11, 6), (8, 4)):
        scene.set("t-[01]", commits=True).run(flowing)
        scene.set("t-[01]", commits=False).run(waiting)
    return scene


@_story(
    "tulios/kafkajs/issues/806",
    "A client polls one broker after another, and waits up to five seconds for each: records are "
    "always committed 15 seconds late.",
    Right("15 seconds are within the objective.", "healthy", never=("stuck",)),
)
def _a_quarter_of_a_minute_late() -> Scene:
    scene = _Live({"t": 6}, {"a": "t", "b": "t"}).own({"a": "t-[012]", "b": "t-[345]"})
    scene.set("t-*", arrives=240, seconds=0.01).run(50)

    def later(question: dict[str, Any]) -> None:
        rng = np.random.default_rng(3)
        for before, sample in zip(question["snapshots"], question["snapshots"][1:], strict=False):
            for number in range(6):
                late = int(240 * rng.uniform(0.18, 0.32))
                least = before["committed"]["t"][number]
                sample["committed"]["t"][number] = max(
                    sample["committed"]["t"][number] - late, least
                )

    return scene.edit(later)


# Stories about deliberate delays


@_story(
    "Blizzard/node-rdkafka/issues/1045",
    "Records must be read three hours after they were written. Once they are due, the consumer "
    "takes nearly all of its batches from partition 0.",
    Right(
        "t-0 is three hours behind, as intended. The nine others are read at a third of their "
        "arrivals, and exceed the objective of three and a half hours.",
        "throttled partition|overloaded",
    ),
)
def _three_hours_late_and_unevenly() -> Scene:
    scene = _Live({"t": 10}, {"a": "t"}, every=5, policy={"objective": "PT3H30M"}).own({"a": "t-*"})
    scene.set("t-*", arrives=36, delay=180, reads=10).set("t-0", reads=400)
    return scene.run(330)


# Stories of consumers that report work


@_story(
    "confluentinc/confluent-kafka-javascript/issues/223",
    "A consumer processes its partitions in parallel, one record of each at a time. In one "
    "partition, a record takes 0.3 s and 400 a minute arrive; records of the others are fast.",
    Right(
        "400 records of 0.3 s are two minutes of work per minute, for any consumer; the "
        "consumer's other partitions are not affected.",
        "hot partition|throttled partition",
        names="t-4",
        also="b",
        more=(None, 0),
    ),
)
def _serial_in_a_parallel_consumer() -> Scene:
    scene = _Live({"t": 8}, {"a": "t", "b": "t"}, busy_s=240.0)
    scene.own({"a": "t-[0-3]", "b": "t-[4-7]"}).report("a b")
    scene.set("t-*", arrives=400, seconds=0.02).set("t-4", seconds=0.3)
    return scene.limit("t-4", 195).run(50)


@_story(
    "PostHog/posthog/pull/42780",
    "Consumers report their work until a rollback half an hour ago. Ten minutes later, arrivals "
    "in two partitions of one consumer triple.",
    Right(
        "a gets 1,800 a minute and reads 1,500, as it had reported; b and c get 600 each.",
        "unbalanced",
        names="a",
        also="t-0 t-1",
        plan=True,
        places=True,
        more=(0,),
    ),
)
def _reports_end_with_a_rollback() -> Scene:
    scene = _Live({"t": 6}, dict.fromkeys("abc", "t")).own(_dealt("abc", 6))
    scene.report("a b c")
    scene.set("t-*", arrives=300, seconds=0.038).behind("t-*", 2_000).run(25)
    scene.reporters.clear()
    scene._reports.clear()  # noqa: SLF001 - as an upgrade of all members does
    scene.run(10)
    scene.set("t-[01]", arrives=900)
    return scene.run(20)


@_story(
    "databricks/iceberg-kafka-connect/issues/155",
    "A sink commits every five minutes, and reports its work with each commit. Its three tasks "
    "are always busy and fall behind.",
    Right(
        "2,000 a minute arrive for each task, which reads 1,630. A task has no capacity for two "
        "partitions, so the six partitions need six tasks.",
        "overloaded",
        more=(3,),
    ),
)
def _busy_sink_reports_every_five_minutes() -> Scene:
    scene = _Live({"t": 6}, dict.fromkeys("abc", "t"))
    scene.own(_dealt("abc", 6)).report("a b c")
    scene.set("t-*", arrives=1_000, seconds=0.035, commit_every=5).run(70)
    for member in "abc":
        for first in range(0, 70, 5):
            scene.edit(_silent(member, first, first + 4))
    return scene


# Stories of healthy groups with unusual habits


@_story(
    "ClickHouse/ClickHouse/issues/2508",
    "A table inserts and commits blocks of 65,536 records, in each partition about every eleven "
    "minutes, at different times.",
    Right("Each commit covers all full blocks.", "healthy", never=("stuck",)),
)
def _commits_blocks_of_65536() -> Scene:
    scene = _Live({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-[01]", "b": "t-[23]"})
    for number, waiting in enumerate((1_000, 20_000, 41_000, 60_000)):
        scene.set(f"t-{number}", end=50_000 + waiting, position=50_000 + waiting)
    return scene.set("t-*", arrives=6_000, seconds=0.001, commit_by=65_536).run(150)


@_story(
    "grafana/mimir/issues/9206",
    "Block builders read for a few minutes once an hour. The objective is two hours.",
    Right("Every hour, all available records are read and committed.", "healthy", never=("stuck",)),
)
def _consumes_once_an_hour() -> Scene:
    scene = _Live({"t": 6}, dict.fromkeys("abc", "t"), every=5, policy={"objective": "PT2H"})
    scene.own(_dealt("abc", 6)).set("t-*", arrives=400, seconds=0.0001)
    for _ in range(7):
        scene.limit("t-*", 0).run(55)
        scene.limit("t-*", inf).run(5)
    scene.limit("t-*", 0).run(35)
    return scene


@_story(
    "grafana/tempo/pull/4655",
    "Each consumer reads one of its three partitions for five minutes, to the end, then the next "
    "one. The objective is 20 minutes.",
    Right("Each partition is read to its end when its turn comes.", "healthy", never=("stuck",)),
)
def _one_partition_at_a_time() -> Scene:
    scene = _Live({"t": 6}, {"a": "t", "b": "t"}, policy={"objective": "PT20M"})
    scene.own({"a": "t-[012]", "b": "t-[345]"}).set("t-*", arrives=400, seconds=0.005)
    for turn in ("t-[03]", "t-[14]", "t-[25]") * 6:
        scene.limit("t-*", 0).limit(turn, inf).run(5)
    return scene


@_story(
    "databricks/iceberg-kafka-connect/issues/155",
    "A sink commits every five minutes. Its arrivals rise from 600 to 3,000 a minute within an "
    "hour and a half, so more records wait before each commit.",
    Right("Each commit covers all records that have arrived.", "healthy", never=("stuck",)),
)
def _waits_longer_as_the_day_begins() -> Scene:
    scene = _Live({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-[01]", "b": "t-[23]"})
    scene.set("t-*", seconds=0.005, commit_every=5)
    for minute in range(123):
        scene.set("t-*", arrives=1_800 + 1_200 * sin(pi * (minute - 62) / 180))
        scene.run(1)
    return scene


@_story(
    "ExpediaDotCom/haystack-trends/pull/158",
    "Every quarter of an hour, garbage collection stops one host for two minutes; then it catches "
    "up within a minute. The last pause was five minutes ago.",
    Right("Everything has been read since the last pause.", "healthy", never=("stuck", "slow")),
)
def _collects_garbage() -> Scene:
    scene = _Live({"t": 6}, dict.fromkeys("abc", "t")).own(_dealt("abc", 6))
    scene.set("t-*", arrives=400, seconds=0.01)
    for minutes in (13, 13, 13, 13, 5):
        scene.limit("t-[45]", 0).run(2)
        scene.limit("t-[45]", inf).run(minutes)
    return scene


@_story(
    "Trendyol/kafka-retry-job/issues/46",
    "Retry topics end in transaction markers and aborted records, which no consumer can read: "
    "some partitions keep a lag of three to eight. The main topic is read to its end.",
    Right(
        "Nothing arrives in the retry topics, and all other partitions are read to their ends.",
        "healthy",
        never=("stuck",),
    ),
)
def _lag_at_rest() -> Scene:
    scene = _Live({"main": 4, "retry": 6}, {"a": "main retry", "b": "main retry"})
    scene.own({"a": "main-[01] retry-[012]", "b": "main-[23] retry-[345]"})
    scene.set("main-*", arrives=500, seconds=0.01)
    for number, rest in enumerate((3, 8, 5, 0, 0, 4)):
        scene.set(f"retry-{number}", end=50_000 + rest, behind_end=rest, commits=False)
    return scene.run(60)


@_story(
    "kedacore/keda/issues/5096",
    "Every eight minutes an autoscaler changes from three to four consumers or back. Each time, "
    "all partitions lack an owner in one sample, and most of them move.",
    Right("Both three and four consumers keep up.", "healthy", never=("stuck",)),
)
def _autoscaler_flaps() -> Scene:
    scene = _Live({"t": 12}, dict.fromkeys("abcd", "t"))
    scene.set("t-*", arrives=300, seconds=0.015)
    for turn in range(8):
        scene.set("t-*", owner=None).run(1)
        scene.own(_dealt("abc" if turn % 2 == 0 else "abcd", 12)).run(7)
    return scene


@_story(
    "apache/kafka/pull/22610",
    "Every ten minutes a mirror sets the commits of an active group back. The group's next "
    "commit, seconds later, corrects this; one sample in ten shows the wrong offsets.",
    Right("In nine of ten samples, the group has read all records.", "healthy", never=("stuck",)),
)
def _mirror_rewinds_for_a_moment() -> Scene:
    scene = _Live({"t": 6}, dict.fromkeys("abc", "t")).own(_dealt("abc", 6))
    scene.set("t-*", arrives=500, seconds=0.01).run(57)

    def rewind(question: dict[str, Any]) -> None:
        for sample in question["snapshots"][10::10]:
            sample["committed"]["t"] = [offset - 4_000 for offset in sample["committed"]["t"]]

    return scene.edit(rewind)


@_story(
    "confluentinc/librdkafka/pull/2954",
    "A producer sends 3,000 records a minute to one partition for ten minutes, then to another; "
    "the other partitions get nothing.",
    Right(
        "The consumer that owns the busy partition can read 5,700 a minute.",
        "healthy",
        never=("stuck", "hot"),
    ),
)
def _load_wanders() -> Scene:
    scene = _Live({"t": 6}, dict.fromkeys("abc", "t")).own(_dealt("abc", 6))
    scene.set("t-*", seconds=0.01)
    for number in (2, 5, 0, 3, 1, 4):
        scene.set("t-*", arrives=0).set(f"t-{number}", arrives=3_000).run(10)
    return scene


@_story(
    "linkedin/Burrow/issues/223",
    "Within 20 minutes, the lag of two partitions rises from a dozen records to two hundred, "
    "which arrive in 20 seconds, and falls again.",
    Right("20 seconds are within the objective.", "healthy", never=("stuck", "throttled")),
)
def _small_lag_rises() -> Scene:
    scene = _Live({"t": 24}, dict.fromkeys("abcd", "t")).own(_dealt("abcd", 24))
    scene.set("t-*", arrives=600, reads=3_000).run(25)
    scene.run(20)

    def rise(question: dict[str, Any]) -> None:
        for since, sample in enumerate(question["snapshots"][-20:]):
            for number in (14, 23):
                offset = sample["end"]["t"][number] - 11 - 10 * since
                sample["committed"]["t"][number] = offset

    return scene.edit(rise)


@_story(
    "grafana/tempo/pull/4655",
    "Each consumer reads its two partitions in turns of eight minutes. The objective is half an "
    "hour.",
    Right("Each partition was read to its end in five turns.", "healthy", never=("stuck",)),
)
def _two_in_turns_of_eight() -> Scene:
    scene = _Live({"t": 4}, {"a": "t", "b": "t"}, policy={"objective": "PT30M"}).own(
        _dealt("ab", 4)
    )
    scene.set("t-*", arrives=400, seconds=0.005)
    for turn in ("t-[02]", "t-[13]") * 5:
        scene.limit("t-*", 0).limit(turn, inf).run(8)
    return scene


@_story(
    "smallrye/smallrye-reactive-messaging/issues/3035",
    "Four times an hour, one partition's commit waits for a slow record for seven to ten minutes, "
    "then jumps to the end. It has now waited for nine minutes.",
    Right(
        "Three earlier waits were as long, and each ended without intervention.",
        "healthy|recovering|unknown",
        never=("stuck",),
    ),
)
def _one_partition_waits_now_and_then() -> Scene:
    scene = (
        _Live({"t": 6}, {"a": "t", "b": "t"})
        .own(_dealt("ab", 6))
        .set("t-*", arrives=300, seconds=0.01)
    )
    for flowing, waiting in ((6, 8), (7, 10), (5, 9), (6, 10), (6, 9)):
        scene.set("t-1", commits=True).run(flowing)
        scene.set("t-1", commits=False).run(waiting)
    return scene


@_story(
    "https://preproom.ai/code/oc-g394",
    "Nine partitions and four consumers, never with a backlog.",
    Right("All records are read.", "healthy", more=(0, -1, -2)),
)
def _nine_over_four_in_time() -> Scene:
    scene = _Live({"t": 9}, dict.fromkeys("abcd", "t")).own(_dealt("abcd", 9))
    return scene.set("t-*", arrives=300, seconds=0.01).run(60)
