"""Sixty situations from public reports, and ten healthy groups with unusual habits.

Belongs here: events, and the right answer, fixed before the analysis was run and without knowledge
of its rules.

Rates are records per minute, and offsets begin at 50,000. Without a policy the objective is a
minute, and the horizon half an hour. Arrivals vary by about a tenth from minute to minute, and a
member works at most 57 seconds a minute.
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
    """Workers whose load varies from minute to minute, in common and partition by partition."""

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
        """Replace the members of the group, as the question shows them."""
        self._members = {name: {"topics": topics.split()} for name, topics in members.items()}
        return self


def _of(numbers: Sequence[int], topic: str = "t") -> str:
    return " ".join(f"{topic}-{number}" for number in numbers)


def _dealt(members: Sequence[str], partitions: int, topic: str = "t") -> dict[str, str]:
    """Deal partitions as the range assignor does."""
    shares = np.array_split(np.arange(partitions), len(members))
    return {member: _of(list(share), topic) for member, share in zip(members, shares, strict=True)}


# Work that is spread unevenly


@_story(
    "apache/beam/issues/30834",
    "Partitions of all topics are assigned in sorted order, so that one worker has most of a "
    "topic. That topic gets three times as much for 20 minutes.",
    Right(
        "a gets 2,700 a minute and reads 1,500; c and d get 600. One busy partition each fits.",
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
    "Every instance has four tasks, but one has all those of the heavy sub-topology.",
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
        "Six partitions bring 1,440 a minute, and an instance reads 1,200; three each are 720.",
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
    "Producers without keys never change their partition: three of six partitions get all "
    "records, and one consumer has two of the three.",
    Right(
        "a gets 1,800 a minute and reads 1,500, b gets nothing at all.",
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
    "A slow partition holds up all others of its consumer, because the client waits for all of "
    "them before it fetches again.",
    Right(
        "a reads 300 a minute of each of its four partitions, where 500 arrive; b has read 1,000 "
        "of each, and has room for two more.",
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
    "A new version is rolled out on one of four instances first; each record takes it four times "
    "as long.",
    Right(
        "d2 reads 712 a minute of 1,000; the others have read 2,850.",
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
    "Of two pods only one can connect; it has all three partitions and does not keep up.",
    Right(
        "2,400 a minute arrive and the pod reads 2,000; with a second one the busier gets 1,600.",
        "overloaded",
        more=(1,),
    ),
)
def _one_of_two_pods_connects() -> Scene:
    scene = _Live({"t": 3}, {"otel-1": "t"}).own({"otel-1": "t-*"})
    return scene.set("t-*", arrives=800, seconds=0.0285).run(40)


# One partition with too many records


@_story(
    "https://preproom.ai/code/oc-g386",
    "A customer turns on verbose logging: half an hour ago its partition began to get seven times "
    "as much. Each partition has an instance.",
    Right(
        "2,800 a minute arrive in t-4, and no instance reads more than 1,900.",
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
    "instance works on its partitions in parallel: the others stay near zero.",
    Right(
        "t-1 and t-6 are read at a third of what arrives, beside partitions that are read at once.",
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
    "Four partitions with Zipf-distributed load and a dozen consumers, eight of which have "
    "nothing to do.",
    Right(
        "9,000 a minute arrive in t-0, and its consumer reads 7,000, with nothing else to read.",
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
    "Three partitions, three ingesters: lag grows in all of them, in one much faster.",
    Right(
        "2,400, 1,500 and 1,500 a minute arrive, and each ingester reads 1,200.",
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
    "The first partition of a consumer always fills its queue, so the next ones are hardly ever "
    "fetched.",
    Right(
        "t-0 is at its end all the time; t-1 and t-2 are read at an eighth of what arrives.",
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
    "A block builder reads at most so many bytes in each cycle of five minutes. One partition of "
    "three brings more than twice as much.",
    Right(
        "2,200 a minute arrive in t-0, and 1,000 are read by a builder that has nothing else.",
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
    "A topic of one partition has three consumers, and its lag keeps growing.",
    Right(
        "One consumer reads all it can; the others can get nothing.",
        "hot partition|overloaded",
        more=(None,),
    ),
)
def _single_partition_three_consumers() -> Scene:
    scene = _Live({"t": 1}, dict.fromkeys("abc", "t")).own({"b": "t-0"})
    return scene.set("t-0", arrives=2_000, seconds=0.04).run(40)


# More than the group can do


@_story(
    "redpanda-data/connect/issues/1169",
    "A service allows 1,800 calls a minute to the whole pipeline. A third instance joined 25 "
    "minutes ago, and nothing became faster.",
    Right(
        "2,400 a minute arrive, and 1,800 are read, by two instances as by three.",
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
    "A sink writes a batch within seconds, then waits exactly five minutes. In five minutes more "
    "arrives than a batch holds.",
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
    "Lag has grown for two weeks, so slowly that no hour shows it: 45 minutes of delay.",
    Right(
        "The group is 45 minutes behind, reads all the time, and does not get nearer to the end.",
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
    "Sixty topics of a partition each, two consumers. At the peak more arrives than they read.",
    Right(
        "3,600 a minute arrive, and a consumer reads 1,500: a third one is needed.",
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
    "An agent takes 1,000 records and waits until they are flushed, every ten seconds: 6,000 a "
    "minute, however many arrive.",
    Right(
        "7,600 a minute arrive for each of two agents; three or four are needed.",
        "overloaded",
        more=(1, 2),
    ),
)
def _a_thousand_records_each_flush() -> Scene:
    scene = _Live({"t": 8}, {"a": "t", "b": "t"}).own({"a": "t-[0-3]", "b": "t-[4-7]"})
    return scene.set("t-*", arrives=1_900, seconds=0.0095).run(40)


@_story(
    "akka/alpakka-kafka/issues/549",
    "Once it is behind, a consumer fetches the same data again and again. The group kept up; "
    "since a burst half an hour ago it reads two thirds of what arrives.",
    Right(
        "All three read 800 of 1,200 a minute since the burst, and fall further behind.",
        "overloaded",
        never=("slow member", "back within"),
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
    "Two instances do less than one: since the second joined, both forward records to each other "
    "and the lag grows.",
    Right(
        "a read 5,000 a minute alone; now a and b read 1,000 each, and 1,500 arrive for each.",
        "overloaded",
        never=("has room",),
    ),
)
def _two_do_less_than_one() -> Scene:
    scene = _Live({"t": 6}, {"a": "t", "b": "t"}).own({"a": "t-*"})
    scene.set("t-*", arrives=500, seconds=0.0114).behind("t-*", 3_000).run(25)
    scene.own({"b": "t-[345]"}).set("t-*", seconds=0.057)
    return scene.run(30)


@_story(
    "confluentinc/confluent-kafka-javascript/issues/247",
    "Consumers read a fast topic and a slow one, and a batch of the slow one holds up the fast "
    "one. Both topics fall behind, in both consumers.",
    Right(
        "Both consumers fall behind with both topics alike: none has room.",
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
    "A record takes eight seconds. Five a minute arrive in each partition, and each consumer has "
    "two.",
    Right(
        "A consumer does seven a minute and gets ten; only one partition each fits.",
        "overloaded",
        more=(4,),
        never=("stuck",),
    ),
)
def _eight_seconds_a_record() -> Scene:
    scene = _Live({"t": 8}, dict.fromkeys("abcd", "t")).own(_dealt("abcd", 8))
    return scene.set("t-*", arrives=5, seconds=8.0).run(60)


# Partitions that stand still


@_story(
    "IBM/sarama/issues/2090",
    "Consumers fetch from followers. When a follower restarts, they neither go on there nor "
    "switch to the leader: three partitions stand, in three consumers.",
    Right(
        "t-0, t-3 and t-6 have had no commit for 25 minutes, beside partitions that have.",
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
    "After a leader election consumption pauses for partitions of all consumers; the group is "
    "stable and heartbeats flow.",
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
    "A partition is paused at an error and never resumed. It has happened three times within half "
    "an hour.",
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
    "A partition moves, its new owner never gets the committed offset, and never fetches it.",
    Right(
        "t-4 has had no commit since it moved to c, which commits its two others.",
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
    "After an offset out of range a consumer goes on at the latest record, but commits its old "
    "offset again and again, which is below the begin of the log.",
    Right(
        "The commit of t-1 has not moved for 40 minutes, and is below what the log still has.",
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
    "Partitions whose begin is not 0 are read and never committed, because the client counts from "
    "0. The others are.",
    Right(
        "t-2 and t-3 have no commit at all, and records arrive there; their owners commit others.",
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
    "A worker stops committing a partition at its first gap in the offsets. Its three partitions "
    "reach one after another; other workers have none.",
    Right(
        "b committed t-3 until minute 10, t-4 until 16 and t-5 until 21; nothing since.",
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
    "Records of a partition fail, and each is retried after a pause that has grown to a minute. "
    "The other partitions are not affected.",
    Right(
        "t-2 moves by a record a minute, of 60 that arrive.",
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
    "A second instance joins and reads its half; the first one stops reading what it kept.",
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
    "One of two outputs of all agents is dead; none of them takes further records.",
    Right("Nobody has committed anything for 14 minutes.", "unknown", more=(None, 0)),
)
def _a_dead_output_stalls_all() -> Scene:
    scene = _Live({"t": 6}, dict.fromkeys("abc", "t")).own(_dealt("abc", 6))
    scene.set("t-*", arrives=600, seconds=0.01).run(30)
    return scene.limit("t-*", 0).run(14)


@_story(
    "confluentinc/librdkafka/issues/843",
    "After a change of leaders two partitions are not fetched until requests to the old leader "
    "time out: two minutes.",
    Right(
        "Two samples without a commit; everything else is at its end.",
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
    "Consumers of the smallest topic report the end of each partition, while records wait there. "
    "With the large topic they have no problem.",
    Right(
        "Four partitions of `small` have had no commit for half an hour, whoever owns them.",
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
    "A coordinator reads a control topic: two partitions are at their end, the third falls further "
    "and further behind.",
    Right(
        "Of 600 a minute 440 are read in t-1, and all 600 in the others, by the same consumer.",
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
        "b has committed nothing for 20 minutes, and records arrive in three of its partitions.",
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


# Groups without owners, members or commits


@_story(
    "akka/alpakka-kafka/issues/1304",
    "Brokers restart, and the group comes back with its members but without an assignment.",
    Right(
        "All partitions fill for 25 minutes with nobody to read them; a and b subscribe.",
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
    "All instances are down for an hour, and the group has no members. Records keep arriving.",
    Right(
        "18,000 records wait in each partition, and nobody is there to read them.",
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
    "A database loads a topic by itself, without joining a group, and commits what it has loaded: "
    "two thirds of what arrives.",
    Right(
        "Commits fall behind by 200 records a minute and partition; no plan can reach the loader.",
        "!healthy|recovering",
    ),
)
def _loads_by_itself_and_falls_behind() -> Scene:
    scene = _Live({"t": 3}, {}).own({"loader": "t-*"}).set("t-*", arrives=600, reads=400)
    scene.owners_shown = False
    return scene.run(60)


@_story(
    "apache/iceberg/issues/17634",
    "A connector that was paused for a day is resumed. In the hour since, its tasks have committed "
    "nothing.",
    Right(
        "Nobody commits: whether the tasks read, nobody can tell.",
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
    "After a broker restart the exporter can no longer read the group's commits, for eight "
    "minutes now.",
    Right(
        "The group kept up as long as its commits could be read; nothing is known since.",
        "unknown|healthy",
        never=("stuck", "never committed"),
    ),
)
def _commits_unreadable_since_a_restart() -> Scene:
    scene = _Live({"t": 6}, dict.fromkeys("abc", "t")).own(_dealt("abc", 6))
    scene.set("t-*", arrives=600, seconds=0.01).run(30)
    scene.commits_readable = False
    return scene.run(8)


@_story(
    "ConduitIO/conduit-connector-kafka/issues/220",
    "A connector commits only each 1,000 records, and a topic gets five a minute in each "
    "partition: hours pass without a commit.",
    Right(
        "Some hundred records are less than a batch; no partition is worse than any other.",
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
    "A sink writes commits for a group that has no members. Each partition is one record short of "
    "its end, and nothing arrives.",
    Right(
        "A record a partition, unchanged for an hour, is the control record of a transaction.",
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
    "A mirror translates the commits of a group to a standby cluster each minute. The group has no "
    "members there, and some commits lie beyond the end.",
    Right(
        "Commits move with the end; nobody reads here, and nothing is wrong.",
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
    "A topic is deleted and made again with three partitions instead of six. Consumers start over "
    "and keep up.",
    Right(
        "All three partitions are at their end in each sample since.",
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
    "A topic is deleted while consumers still subscribe to it. They read their other topic.",
    Right(
        "What exists is read to its end.",
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


# Behind, or seemingly behind, for a while


@_story(
    "https://preproom.ai/code/oc-g396",
    "A sink is down longer than the topic keeps its records. It came back six minutes ago, starts "
    "at the oldest ones left, and reads five times as fast as they arrive.",
    Right(
        "Four of ten minutes of reading are left.",
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
    "A team resets its group to replay 30 days: two million records a partition, of which all "
    "consumers read 3,000 a minute. 25 minutes have passed.",
    Right(
        "The backlog shrinks everywhere alike and needs half a day; no assignment shortens it.",
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
    "A consumer reads on but cannot commit for 20 minutes. It is restarted, and the other two read "
    "its records again, beside their own.",
    Right(
        "Three of twelve minutes of reading have passed.",
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
    "After each rebalance the new owners first read the footers of their files, for five minutes, "
    "with their partitions paused. The last one was four minutes ago.",
    Right(
        "Nothing was committed since the rebalance, by anybody, as after the one before.",
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
    "Every hour tasks roll, and nothing is read for five minutes. Then they catch up; they began "
    "to, two minutes ago.",
    Right(
        "As in the hours before, 3,000 a minute are read of 600: a minute or two is left.",
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
    "The number of instances is doubled, and the commits of all partitions that move go back by "
    "8,000 records. They are read again; two minutes have passed.",
    Right(
        "Each new instance reads 2,850 a minute, of which 1,200 arrive: six more minutes.",
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
    "Nothing arrives, and now and then a commit jumps back by 1,500 records, which are read again "
    "within a minute.",
    Right(
        "Every partition is at its end in the last samples.",
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
    "catch up at once. They stopped again four minutes ago, in one of two consumers.",
    Right(
        "Three standstills before were longer, and ended at the end of the log.",
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
    "A client asks one broker after another and waits up to five seconds at each: records are "
    "committed a quarter of a minute late, always.",
    Right("A quarter of a minute is within the objective.", "healthy", never=("stuck",)),
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


# Delays by design


@_story(
    "Blizzard/node-rdkafka/issues/1045",
    "Records are to be read three hours after they were written. When the time has come, the "
    "consumer takes its batches nearly all from partition 0.",
    Right(
        "t-0 is three hours behind, as wanted; the nine others are read at a third of what "
        "arrives, beyond the three and a half hours allowed.",
        "throttled partition|overloaded",
    ),
)
def _three_hours_late_and_unevenly() -> Scene:
    scene = _Live({"t": 10}, {"a": "t"}, every=5, policy={"objective": "PT3H30M"}).own({"a": "t-*"})
    scene.set("t-*", arrives=36, delay=180, reads=10).set("t-0", reads=400)
    return scene.run(330)


# Consumers that report their work


@_story(
    "confluentinc/confluent-kafka-javascript/issues/223",
    "A consumer works on its partitions in parallel, one record each at a time. The records of one "
    "partition take 0.3 s, and 400 a minute arrive there; the rest is quick.",
    Right(
        "400 records of 0.3 s are two minutes of work a minute for any consumer; its neighbours "
        "are not affected.",
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
    "Consumers report their work until a rollback, half an hour ago. Ten minutes later two "
    "partitions of one consumer begin to get three times as much.",
    Right(
        "a gets 1,800 a minute and reads 1,500, as it reported; b and c get 600 each.",
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
    "A sink commits every five minutes, and reports its work with its commits: three tasks that "
    "are always busy and fall behind.",
    Right(
        "2,000 a minute arrive for each task, which reads 1,630; two partitions never fit one "
        "task, so each of six needs its own.",
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


# Healthy groups with unusual habits


@_story(
    "ClickHouse/ClickHouse/issues/2508",
    "A table inserts, and commits, a block of 65,536 records: every eleven minutes or so, in each "
    "partition at another time.",
    Right("Each commit takes all full blocks.", "healthy", never=("stuck",)),
)
def _commits_blocks_of_65536() -> Scene:
    scene = _Live({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-[01]", "b": "t-[23]"})
    for number, waiting in enumerate((1_000, 20_000, 41_000, 60_000)):
        scene.set(f"t-{number}", end=50_000 + waiting, position=50_000 + waiting)
    return scene.set("t-*", arrives=6_000, seconds=0.001, commit_by=65_536).run(150)


@_story(
    "grafana/mimir/issues/9206",
    "Block builders consume once an hour, for a few minutes. Two hours are allowed.",
    Right("Each hour ends with a commit of all that was there.", "healthy", never=("stuck",)),
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
    "Each consumer reads one of its three partitions to the end, for five minutes, then the next. "
    "20 minutes behind are allowed.",
    Right("Each partition is read to its end in its turn.", "healthy", never=("stuck",)),
)
def _one_partition_at_a_time() -> Scene:
    scene = _Live({"t": 6}, {"a": "t", "b": "t"}, policy={"objective": "PT20M"})
    scene.own({"a": "t-[012]", "b": "t-[345]"}).set("t-*", arrives=400, seconds=0.005)
    for turn in ("t-[03]", "t-[14]", "t-[25]") * 6:
        scene.limit("t-*", 0).limit(turn, inf).run(5)
    return scene


@_story(
    "databricks/iceberg-kafka-connect/issues/155",
    "A sink commits every five minutes, and its load rises from 600 to 3,000 a minute within an "
    "hour and a half: what waits before each commit rises, too.",
    Right("Each commit takes all that has arrived.", "healthy", never=("stuck",)),
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
    "One host collects garbage for two minutes every quarter of an hour; then it catches up within "
    "a minute. The last time was five minutes ago.",
    Right("Everything is read; the pauses are short and over.", "healthy", never=("stuck", "slow")),
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
    "Retry topics end in markers and aborted records that nobody can read: some of them have a "
    "lag of three to eight for ever. The main topic is read.",
    Right("Nothing arrives there, and the rest is at its end.", "healthy", never=("stuck",)),
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
    "An autoscaler goes from three to four consumers and back every eight minutes. Each time all "
    "partitions are without an owner for a sample, and most of them move.",
    Right("Three consumers are enough, and so are four.", "healthy", never=("stuck",)),
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
    "A mirror sets the commits of an active group back every ten minutes; the group's next commit, "
    "seconds later, is right again. One sample in ten shows the wrong ones.",
    Right("Nine of ten samples show the group at its end.", "healthy", never=("stuck",)),
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
    "A producer sends everything to one partition for ten minutes, then to another: 3,000 a minute "
    "here, nothing there.",
    Right(
        "Whoever owns the busy partition reads 5,700 a minute.", "healthy", never=("stuck", "hot")
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
    "The lag of two partitions rises from a dozen to two hundred within 20 minutes, which is a "
    "third of a minute of records, and falls again.",
    Right("A third of a minute is within the objective.", "healthy", never=("stuck", "throttled")),
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
    "Two partitions of each consumer in turns of eight minutes; half an hour is allowed.",
    Right("Each was read to its end in its turn, five times.", "healthy", never=("stuck",)),
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
    "One partition's commit waits for a slow record for seven to ten minutes, four times an hour; "
    "then it jumps to the end. It has waited for nine minutes.",
    Right(
        "It stood as long before, three times, and went on by itself.",
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
    "Nine partitions, four consumers, no backlog ever.",
    Right("All is read.", "healthy", more=(0, -1, -2)),
)
def _nine_over_four_in_time() -> Scene:
    scene = _Live({"t": 9}, dict.fromkeys("abcd", "t")).own(_dealt("abcd", 9))
    return scene.set("t-*", arrives=300, seconds=0.01).run(60)
