"""More groups from public reports.

All sections except the last were written by an engineer who did not know the analysis.

Belongs here: what happened, and the right answers, which follow from the figures of the scene.
Belongs elsewhere: the groups with which the analysis was developed (`reported`, `retold`,
`collected`).

Rates are records per minute, and offsets begin at 50,000. Unless a policy is given, the objective
is a minute, and the horizon half an hour. A member works at most 57 seconds per minute.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any, Final

from benchmarks.stories.answers import Right, Story
from benchmarks.stories.scene import Partition, Scene, stories_of

LATER: Final[list[Story]] = []
_story: Final = stories_of(LATER)

#: Seconds per minute that a member can spend on records; its client needs the remaining time.
_BUSY_S: Final = 57.0


class _Workers(Scene):
    """A group whose members read the same number of records from each of their partitions.

    A partition with fewer records is read to its end. Set `Partition.seconds`, the time per record
    on the present owner. `Partition.reads` is computed from these times.
    """

    def __init__(
        self,
        topics: Mapping[str, int],
        members: Mapping[str, str],
        *,
        every: int = 1,
        policy: Mapping[str, Any] | None = None,
        busy_s: float = _BUSY_S,
    ) -> None:
        super().__init__(topics, members, every=every, policy=policy)
        self._busy_s = busy_s
        self._limits: dict[str, float] = {}
        self._edits: list[Callable[[dict[str, Any]], None]] = []

    def own(self, owners: Mapping[str, str]) -> "_Workers":
        """Give each member the partitions that match its patterns."""
        super().own(owners)
        return self

    def limit(self, patterns: str, records: float) -> "_Workers":
        """Limit the records per minute of each matching partition; `inf` removes the limit."""
        matching = list(self.matching(patterns))
        for name, partition in self._partitions.items():
            if any(partition is other for other in matching):
                self._limits[name] = records
        return self

    def edit(self, change: Callable[[dict[str, Any]], None]) -> "_Workers":
        """Register a function that changes the result of `question` in place."""
        self._edits.append(change)
        return self

    def run(self, minutes: int, *, sampled: bool = True) -> "_Workers":
        """Simulate minutes. Before each minute, divide members' time among their partitions."""
        if not minutes:
            super().run(0, sampled=sampled)
        for _ in range(minutes):
            self._share()
            super().run(1, sampled=sampled)
        return self

    def question(self) -> dict[str, Any]:
        """Return the input for `fairlead decide`, after all registered changes."""
        question = super().question()
        _keep_waiting_monotonic(question["snapshots"])
        for change in self._edits:
            change(question)
        return question

    def _share(self) -> None:
        owned: dict[str, list[tuple[str, Partition]]] = {}
        for name, partition in self._partitions.items():
            if partition.owner is not None and partition.seconds:
                owned.setdefault(partition.owner, []).append((name, partition))
        for mine in owned.values():
            limits = [self._limits.get(name, inf) for name, _ in mine]
            wanted = [
                min(part.end - part.position + 1.2 * part.arrives + 1.0, limit)
                for (_, part), limit in zip(mine, limits, strict=True)
            ]
            most = _equal_share(wanted, [part.seconds for _, part in mine], self._busy_s)
            for (_, part), limit in zip(mine, limits, strict=True):
                part.reads = min(limit, most, 1e9)


def _equal_share(wanted: Sequence[float], seconds: Sequence[float], busy_s: float) -> float:
    """Return the maximum number of records to read from each partition, within `busy_s` seconds.

    The number is equal for all partitions; `inf` if there is time for all wanted records.
    """

    def takes(share: float) -> float:
        return sum(min(want, share) * each for want, each in zip(wanted, seconds, strict=True))

    if takes(inf) <= busy_s:
        return inf
    low, high = 0.0, max(wanted)
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if takes(middle) < busy_s else (low, middle)
    return low


def _keep_waiting_monotonic(samples: Sequence[dict[str, Any]]) -> None:
    """Raise reported waiting times that are lower than earlier ones.

    Random variation of work can cause such times, but a real consumer's total never decreases.
    """
    longest: dict[str, float] = {}
    for sample in samples:
        for report in sample.get("reports", {"consumers": {}})["consumers"].values():
            token = report["token"]
            longest[token] = max(report["waiting_s"], longest.get(token, 0.0))
            report["waiting_s"] = longest[token]


def _silent(member: str, first: int, last: int) -> Callable[[dict[str, Any]], None]:
    """Return a change for `_Workers.edit`: a member commits nothing from minute `first` to `last`.

    During this time, the member's newest report is that of minute `first`. Samples must be a minute
    apart.
    """

    def change(question: dict[str, Any]) -> None:
        samples = question["snapshots"]
        kept = samples[first]["reports"]["consumers"][member]
        for sample in samples[first : last + 1]:
            sample["reports"]["consumers"][member] = dict(kept)

    return change


# Stories in which load differs between partitions or members


@_story(
    "kedacore/keda/issues/2908",
    "One of many partitions is far behind and gets further behind, with a consumer of its own. All "
    "consumers had a backlog an hour ago and worked it off at the same speed, except this one.",
    Right(
        "6,000 a minute arrive in t-0, and every consumer reads at most 4,560.",
        "hot partition",
        names="t-0",
        also="m0",
        more=(None,),
    ),
)
def _one_of_many_partitions() -> Scene:
    scene = _Workers({"t": 8}, {f"m{number}": "t" for number in range(8)})
    scene.own({f"m{number}": f"t-{number}" for number in range(8)})
    scene.set("t-*", arrives=600, seconds=0.0125).set("t-0", arrives=6_000)
    scene.behind("t-*", 20_000)
    return scene.run(50)


@_story(
    "kafka-dev/kafka/issues/76",
    "Twelve topics have a single partition each. The range assignor gives all of them to the first "
    "consumer; the two others have nothing.",
    Right(
        "2,400 a minute arrive and a reads 1,500; two consumers have no partition at all.",
        "unbalanced",
        names="a",
        plan=True,
        places=True,
        more=(0,),
    ),
)
def _one_partition_topics() -> Scene:
    topics = {f"q{number}": 1 for number in range(12)}
    scene = _Workers(topics, {member: " ".join(topics) for member in "abc"})
    scene.own({"a": "q*"})
    scene.set("q*", arrives=200, seconds=0.038)
    return scene.run(45)


@_story(
    "confluentinc/librdkafka/issues/4044",
    "The cooperative-sticky assignor spreads two topics unevenly: six, four and two partitions. "
    "All consumers start with a backlog.",
    Right(
        "a gets 1,800 a minute and reads 1,500, as b did while it had a backlog; four each fit.",
        "unbalanced",
        names="a",
        plan=True,
        places=True,
        more=(0, 1),
    ),
)
def _six_four_two() -> Scene:
    scene = _Workers({"t": 6, "u": 6}, dict.fromkeys("abc", "t u"))
    scene.own({"a": "t-[012] u-[012]", "b": "t-[34] u-[34]", "c": "t-5 u-5"})
    scene.set("*", arrives=300, seconds=0.038)
    scene.behind("*", 1_500)
    return scene.run(50)


@_story(
    "IBM/sarama/issues/1673",
    "A topic grows from four to eight partitions. The producers keep writing to the old four until "
    "they are restarted. The range assignor gives the old four to a, and the new four to b.",
    Right(
        "a gets 1,800 a minute and reads 1,500; b read 900 before and now gets nothing.",
        "unbalanced",
        names="a",
        plan=True,
        places=True,
        more=(0,),
        never=("stuck",),
    ),
)
def _producers_ignore_new_partitions() -> Scene:
    scene = _Workers({"t": 8}, {"a": "t", "b": "t"})
    scene.own({"a": "t-[01]", "b": "t-[23]"})
    scene.set("t-[0-3]", arrives=450, seconds=0.038).set("t-[4-7]", exists=False)
    scene.run(20)
    scene.set("t-[4-7]", exists=True, end=0, position=0, committed=None, seconds=0.038)
    scene.own({"a": "t-[0-3]", "b": "t-[4-7]"})
    return scene.run(35)


@_story(
    "confluentinc/librdkafka/issues/2847",
    "Instances of a group subscribe to different topics: x to A and C, y and z to A only. x has "
    "both partitions of C and one of A. All had a backlog.",
    Right(
        "x gets 1,600 a minute and reads 1,500; without A-0, which y or z can take, it gets 1,300.",
        "unbalanced",
        names="x",
        plan=True,
        places=True,
        more=(0, 1),
    ),
)
def _different_subscriptions() -> Scene:
    scene = _Workers({"A": 4, "C": 2}, {"x": "A C", "y": "A", "z": "A"})
    scene.own({"x": "A-0 C-*", "y": "A-[12]", "z": "A-3"})
    scene.set("A-*", arrives=300, seconds=0.038).set("C-*", arrives=650, seconds=0.038)
    scene.behind("*", 2_000)
    return scene.run(50)


@_story(
    "strimzi/strimzi-kafka-operator/issues/2937",
    "A mirror of a topic with three partitions gets further behind, with three replicas and with "
    "six. Three of the six have nothing to do.",
    Right(
        "24,000 a minute arrive in each partition and a consumer reads 18,000; more partitions "
        "would help, more consumers would not.",
        "hot partition|overloaded",
        more=(None,),
    ),
)
def _more_mirrors_than_partitions() -> Scene:
    scene = _Workers({"t": 3}, {f"m{number}": "t" for number in range(6)})
    scene.own({f"m{number}": f"t-{number}" for number in range(3)})
    scene.set("t-*", arrives=24_000, seconds=0.00317)
    return scene.run(45)


@_story(
    "elastic/logstash/issues/10690",
    "Three Logstash nodes on machines of different strength have four partitions each. The weakest "
    "falls behind slowly; the others work off the same backlog in a few minutes.",
    Right(
        "c reads 1,800 of 2,000 a minute; a and b read 11,400 and 5,700 while they had a backlog.",
        "slow member|unbalanced",
        names="c",
        plan=True,
        more=(0,),
    ),
)
def _machines_of_different_strength() -> Scene:
    scene = _Workers({"t": 12}, {"a": "t", "b": "t", "c": "t"})
    scene.own({"a": "t-[0-3]", "b": "t-[4-7]", "c": "t-8 t-9 t-10 t-11"})
    scene.set("t-*", arrives=500, seconds=0.01).behind("t-*", 5_000)
    scene.set("t-[0-3]", seconds=0.005)
    scene.set("t-8 t-9 t-10 t-11", seconds=0.0317)
    return scene.run(55)


# Stories in which more records arrive than the group can read


@_story(
    "confluentinc/kafka-connect-hdfs/issues/463",
    "One sink task reads all partitions of a topic. It has reached the end of retention: each "
    "minute it finds records deleted and continues at the first that is left.",
    Right(
        "3,600 a minute arrive, and the commits advance as much, but only 1,000 are read; the rest "
        "is deleted unread. Four consumers would read 4,000.",
        "overloaded",
        more=(3, 4, 5),
        says=("retention|delet|lost|lose|losing",),
    ),
)
def _retention_carries_the_commits() -> Scene:
    scene = _Workers({"t": 12}, {"connect-0": "t"}).own({"connect-0": "t-*"})
    scene.set("t-*", arrives=300, seconds=0.057, keeps=36_000).behind("t-*", 36_000)
    return scene.run(50)


@_story(
    "fluent/fluent-plugin-kafka/issues/185",
    "The group falls behind, and its operator lets it start at the latest records. Twelve minutes "
    "later it is behind again.",
    Right(
        "1,200 a minute arrive for each consumer and 900 are read, before and after the jump. Of "
        "three consumers one would keep two partitions; four are enough.",
        "overloaded",
        more=(2,),
        never=("stuck",),
    ),
)
def _starting_at_the_latest_helps_for_a_while() -> Scene:
    scene = _Workers({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-[01]", "b": "t-[23]"})
    scene.set("t-*", arrives=600, seconds=0.0633).run(40)
    scene.behind("t-*", 0)
    return scene.run(12)


@_story(
    "confluentinc/examples/pull/948",
    "One consumer reads what one producer writes, and works off a backlog. Every ten minutes "
    "another producer begins to write as much. With the fifth it is too much for the consumer.",
    Right(
        "2,400 a minute arrive and the consumer reads 2,000; two would read 4,000.",
        "overloaded",
        more=(1, 2),
    ),
)
def _five_producers_one_after_another() -> Scene:
    scene = _Workers({"t": 4}, {"a": "t"}).own({"a": "t-*"})
    scene.set("t-*", seconds=0.0285).behind("t-*", 3_000)
    for producers in range(1, 6):
        scene.set("t-*", arrives=120 * producers)
        scene.run(10)
    return scene


# Stories of groups that are behind only for a short time


@_story(
    "twmb/franz-go/issues/995",
    "The group rebalances for 20 minutes without an end, and nobody owns anything. It has been "
    "stable for three minutes.",
    Right(
        "5,700 a minute are read by each consumer, and 1,200 arrive: back within three minutes.",
        "recovering",
        more=(0,),
        never=("stuck",),
    ),
)
def _rebalances_for_twenty_minutes() -> Scene:
    owners = {"a": "t-[01]", "b": "t-[23]", "c": "t-[45]"}
    scene = _Workers({"t": 6}, dict.fromkeys("abc", "t")).own(owners)
    scene.set("t-*", arrives=600, seconds=0.01).run(15)
    scene.set("t-*", owner=None).run(20)
    scene.own(owners)
    return scene.run(3)


@_story(
    "uber/uReplicator/issues/197",
    "Every hour a job writes as much in four minutes as arrives in the rest of the hour. The group "
    "needs five more minutes for it each time. The third burst ended two minutes ago.",
    Right(
        "As after the two bursts before, 300 a minute arrive in a partition and 3,000 are read.",
        "recovering",
        more=(0,),
    ),
)
def _burst_every_hour() -> Scene:
    scene = _Workers({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-[01]", "b": "t-[23]"})
    scene.set("t-*", seconds=0.0095)
    for _ in range(3):
        scene.set("t-*", arrives=300)
        scene.run(56)
        scene.set("t-*", arrives=6_000)
        scene.run(4)
    scene.set("t-*", arrives=300)
    return scene.run(2)


@_story(
    "apache/kafka/pull/2560",
    "After a deployment, an instance of a Kafka Streams application restores its state for twelve "
    "minutes and reads nothing. Two minutes ago it began to read; the others never stopped.",
    Right(
        "c reads 5,700 a minute and 1,200 arrive: the rest is read in two minutes.",
        "recovering",
        more=(0,),
        never=("stuck",),
    ),
)
def _state_restored() -> Scene:
    scene = _Workers({"t": 6}, dict.fromkeys("abc", "t"))
    scene.own({"a": "t-[01]", "b": "t-[23]", "c": "t-[45]"})
    scene.set("t-*", arrives=600, seconds=0.01).run(15)
    scene.limit("t-[45]", 0).run(12)
    return scene.limit("t-[45]", inf).run(2)


@_story(
    "PostHog/posthog/pull/77368",
    "In the evening the load falls to a quarter. The consumers, which were overloaded for 40 "
    "minutes, have been working off their backlog for five.",
    Right(
        "600 a minute arrive for each consumer and 2,000 are read: 9,000 left, seven minutes.",
        "recovering",
        more=(0,),
    ),
)
def _load_falls_in_the_evening() -> Scene:
    scene = _Workers({"t": 6}, {"a": "t", "b": "t"}).own({"a": "t-[012]", "b": "t-[345]"})
    scene.set("t-*", arrives=800, seconds=0.0285).run(40)
    scene.set("t-*", arrives=200)
    return scene.run(5)


@_story(
    "confluentinc/confluent-kafka-dotnet/issues/1712",
    "A single consumer cannot keep up. Six minutes ago a second one joined and got half of the "
    "partitions; both now read more than arrives.",
    Right(
        "Each gets 1,000 a minute and reads 1,500; about 2,000 are left, four minutes.",
        "recovering",
        more=(0,),
    ),
)
def _second_consumer_has_joined() -> Scene:
    scene = _Workers({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-*"})
    scene.set("t-*", arrives=500, seconds=0.038).run(20)
    scene.own({"b": "t-[23]"})
    return scene.run(6)


@_story(
    "hpgrahsl/kafka-connect-mongodb/issues/60",
    "A sink is nine million records behind. Its owners are content with half a day, and it reads a "
    "little more than arrives.",
    Right(
        "1,500,000 records of 5,000 a minute are five hours, less than the twelve allowed.",
        "healthy",
    ),
)
def _nine_million_behind() -> Scene:
    scene = _Workers({"t": 6}, {"a": "t", "b": "t"}, policy={"objective": "PT12H"})
    scene.own({"a": "t-[012]", "b": "t-[345]"})
    scene.set("t-*", arrives=5_000, seconds=0.003725)
    scene.set("t-*", end=4_000_000, position=4_000_000, committed=4_000_000)
    scene.behind("t-*", 1_500_000)
    return scene.run(60)


@_story(
    "allegro/hermes/issues/430",
    "Consumers are slow after a deploy and get faster every minute. The lag has shrunk for three "
    "minutes.",
    Right(
        "5,400 a minute arrive, and 6,480 were read in the last minute.", "recovering", more=(0,)
    ),
)
def _warm_up_after_a_deploy() -> Scene:
    scene = _Workers({"t": 6}, dict.fromkeys("abc", "t"))
    scene.own({"a": "t-[01]", "b": "t-[23]", "c": "t-[45]"})
    scene.set("t-*", arrives=900, seconds=0.02).run(50)
    for minute in range(9):
        scene.set("t-*", seconds=57.0 / (720 + 3 * 60 * minute)).run(1)
    return scene


# Stories with misleading commits and offsets


@_story(
    "confluentinc/librdkafka/issues/1558",
    "A topic loses its data and begins again at offset 0. The consumer reads what arrives, but "
    "never commits an offset below its last one: lag is negative.",
    Right(
        "The commits are of offsets that do not exist yet; they show neither reading nor lag.",
        "unknown|healthy",
        never=("stuck",),
    ),
)
def _commits_of_the_old_log() -> Scene:
    scene = _Workers({"t": 3}, {"a": "t"}).own({"a": "t-*"})
    scene.set("t-*", arrives=300, seconds=0.01).run(20)
    scene.set("t-*", end=0, position=0, commits=False)
    return scene.run(30)


@_story(
    "spring-projects/spring-kafka/issues/2596",
    "A listener container polls for five seconds after every record that fails. Records begin to "
    "fail in one consumer, and it falls behind with all its partitions.",
    Right(
        "b reads 950 of 1,500 a minute, in all partitions; before, every consumer read 5,700.",
        "slow member",
        names="b",
        also="t-3 t-4 t-5",
        plan=True,
        more=(0,),
    ),
)
def _pauses_after_each_error() -> Scene:
    scene = _Workers({"t": 9}, dict.fromkeys("abc", "t"))
    scene.own({"a": "t-[012]", "b": "t-[345]", "c": "t-[678]"})
    scene.set("t-*", arrives=500, seconds=0.01).behind("t-*", 4_000)
    scene.run(10)
    scene.set("t-[345]", seconds=0.06)
    return scene.run(40)


@_story(
    "dpkp/kafka-python/issues/1880",
    "Two consumers read the only partition of a topic, the second without belonging to it. Every "
    "fifth minute the second commits an offset that is 2,500 lower.",
    Right(
        "In four of five samples, and in the last, the group is at its end.",
        "healthy|unknown",
        never=("stuck",),
    ),
)
def _two_consumers_commit() -> Scene:
    scene = _Workers({"t": 1}, {"a": "t", "b": "t"}).own({"a": "t-0"})
    scene.set("t-0", arrives=600, seconds=0.01)
    scene.run(48)

    def commit_lower(question: dict[str, Any]) -> None:
        for sample in question["snapshots"][5:48:5]:
            sample["committed"]["t"][0] -= 2_500

    return scene.edit(commit_lower)


@_story(
    "apache/hudi/issues/11051",
    "A Hudi job keeps its offsets in its own checkpoints and never commits any to Kafka.",
    Right(
        "Without a commit, nothing is known of what the members read.",
        "unknown",
        never=("overloaded",),
    ),
)
def _offsets_in_own_checkpoints() -> Scene:
    scene = _Workers({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-[01]", "b": "t-[23]"})
    scene.set("t-*", arrives=600, seconds=0.01, committed=None, commits=False)
    return scene.run(45)


@_story(
    "getsentry/self-hosted/issues/2906",
    "After an upgrade, no consumer subscribes to two topics of the group any more. Producers still "
    "write them, and the old commits remain.",
    Right(
        "The group has left `metrics`; it reads everything of the topic that it subscribes to.",
        "healthy",
        never=("stuck",),
    ),
)
def _topics_that_nobody_reads_any_more() -> Scene:
    scene = _Workers({"events": 2, "metrics": 2}, {"a": "events", "b": "events"})
    scene.own({"a": "events-0", "b": "events-1"})
    scene.set("events-*", arrives=600, seconds=0.01)
    scene.set("metrics-*", arrives=900)
    return scene.run(60)


@_story(
    "segmentio/kafka-go/issues/365",
    "A slow reader is overtaken by retention in one partition. It notices that its next record is "
    "deleted and stops reading that partition; the others are fine.",
    Right(
        "a commits t-1 every minute, and t-0 not for half an hour, although 3,000 records are "
        "there to be read.",
        "stuck partition",
        names="t-0",
        also="a",
        more=(None, 0),
    ),
)
def _reader_stops_where_retention_passed() -> Scene:
    scene = _Workers({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-[01]", "b": "t-[23]"})
    scene.set("t-*", arrives=400, seconds=0.01).behind("t-0", 2_000)
    scene.limit("t-0", 300).run(9)
    scene.set("t-0", keeps=3_000)
    return scene.limit("t-0", 0).run(30)


@_story(
    "Farfetch/kafkaflow-retry-extensions/issues/160",
    "A consumer pauses all its partitions while it retries one record, for 15 minutes now. It has "
    "committed nothing since.",
    Right(
        "b commits nothing at all; to give its partitions to a moves the record that fails.",
        "unknown|stuck partition",
        more=(None, 0),
    ),
)
def _whole_consumer_paused_for_a_retry() -> Scene:
    scene = _Workers({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-[01]", "b": "t-[23]"})
    scene.set("t-*", arrives=400, seconds=0.01).run(30)
    return scene.limit("t-[23]", 0).run(15)


@_story(
    "confluentinc/kafka-connect-hdfs/issues/324",
    "A restarted task has committed nothing for nearly an hour. Before, it committed every few "
    "seconds.",
    Right("10 records a second have waited in t-7 for 58 minutes.", "unknown", names="d"),
)
def _stopped_an_hour_ago() -> Scene:
    scene = _Workers({"t": 8}, dict.fromkeys("abcd", "t"))
    scene.own({"a": "t-[01]", "b": "t-[23]", "c": "t-[456]", "d": "t-7"})
    scene.set("t-*", arrives=600, seconds=0.01).run(60)
    return scene.limit("t-7", 0).run(58)


@_story(
    "confluentinc/confluent-kafka-python/issues/552",
    "A record blocks its consumer for longer than max.poll.interval.ms. The consumer loses its "
    "partitions, and the next owner of this one fares likewise.",
    Right(
        "t-4 has had no commit for 75 minutes; all other partitions can be read in time.",
        "stuck partition|unknown",
        names="t-4",
    ),
)
def _poison_stops_one_owner_after_another() -> Scene:
    shares = {"a": "t-[012]", "b": "t-[35]", "c": "t-[678]"}
    scene = _Workers({"t": 9}, dict.fromkeys("abc", "t"))
    scene.own({**shares, "b": "t-[345]"})
    scene.set("t-*", arrives=500, seconds=0.008).run(20)
    for turn in range(15):
        victim = "abc"[turn % 3]
        scene.own({**shares, victim: f"{shares[victim]} t-4"})
        scene.limit("t-*", inf).limit(f"{shares[victim]} t-4", 0).run(2 if turn == 14 else 5)
    return scene


# Stories in which reports show an owner that waits for records


@_story(
    "adjust/schaufel/issues/47",
    "Consumers read from another continent. Each partition brings 600 records a second, however "
    "many there are, and the consumers wait most of the time.",
    Right(
        "40,000 a minute arrive in each partition and 36,000 come out; the owners are busy for a "
        "quarter of their time.",
        "throttled partition",
        more=(None,),
    ),
)
def _read_from_another_continent() -> Scene:
    scene = _Workers({"t": 6}, dict.fromkeys("abc", "t"))
    scene.own({"a": "t-[01]", "b": "t-[23]", "c": "t-[45]"})
    scene.report("a b c")
    scene.set("t-*", arrives=40_000, seconds=0.0002)
    return scene.limit("t-*", 36_000).run(45)


@_story(
    "apache/kafka/pull/8290",
    "A small bandwidth quota applies to the client id of one consumer. Brokers send it empty "
    "responses for most of the time; it has nothing to do meanwhile.",
    Right(
        "c reads 2,000 of 3,000 a minute in both partitions and works 2 seconds a minute.",
        "throttled partition|slow member",
        plan=None,
        more=(None, 0),
    ),
)
def _quota_of_one_client() -> Scene:
    scene = _Workers({"t": 6}, dict.fromkeys("abc", "t"))
    scene.own({"a": "t-[01]", "b": "t-[23]", "c": "t-[45]"})
    scene.report("a b c")
    scene.set("t-*", arrives=3_000, seconds=0.0005).run(15)
    return scene.limit("t-[45]", 2_000).run(35)


@_story(
    "apache/kafka/pull/19456",
    "A quota lets four fifths of the records through. Handlers need half of the time, so the "
    "consumers wait less than half of it, and the lag grows without a pause.",
    Right(
        "10,800 a minute arrive and 8,640 are read, in half of the time of three consumers.",
        "throttled partition",
        more=(None,),
    ),
)
def _quota_with_busy_handlers() -> Scene:
    scene = _Workers({"t": 9}, dict.fromkeys("abc", "t"))
    scene.own({"a": "t-[012]", "b": "t-[345]", "c": "t-[678]"})
    scene.report("a b c")
    scene.set("t-*", arrives=1_200, seconds=0.0105).run(20)
    return scene.limit("t-*", 960).run(60)


@_story(
    "zendesk/racecar/pull/334",
    "A partition is paused after an error, moves to another consumer in a rebalance, and returns. "
    "The pause has expired, but the client of the first consumer was never told to resume.",
    Right(
        "a commits its two other partitions every minute, and t-2 not for 25 minutes.",
        "stuck partition",
        names="t-2",
        also="a",
        plan=None,
        more=(None, 0),
    ),
)
def _still_paused_after_it_came_back() -> Scene:
    scene = _Workers({"t": 6}, {"a": "t", "b": "t"}).own({"a": "t-[012]", "b": "t-[345]"})
    scene.report("a b")
    scene.set("t-*", arrives=300, seconds=0.02).run(15)
    scene.own({"b": "t-2"})
    scene.run(5)
    scene.own({"a": "t-2"})
    return scene.limit("t-2", 0).run(25)


# Stories in which reports show a busy owner


@_story(
    "confluentinc/kafka-connect-jdbc/issues/853",
    "A sink to a database is fast at first. After half an hour each row takes twelve times as "
    "long, in every task: the database is slow.",
    Right(
        "1,800 a minute arrive for each member and 950 are read; all became slower at once, so no "
        "assignment helps.",
        "overloaded",
    ),
)
def _database_slows_every_task() -> Scene:
    scene = _Workers({"t": 9}, dict.fromkeys("abc", "t"))
    scene.own({"a": "t-[012]", "b": "t-[345]", "c": "t-[678]"})
    scene.report("a b c")
    scene.set("t-*", arrives=600, seconds=0.005).run(30)
    scene.set("t-*", seconds=0.06)
    return scene.run(25)


@_story(
    "mailgun/kafka-pixy/issues/36",
    "Messages are spread unevenly among the partitions. The consumer of the heaviest one has two "
    "others as well, and falls behind.",
    Right(
        "a gets 3,400 a minute at 19 ms each, more than a minute's work; b is busy for 23 seconds.",
        "unbalanced",
        names="a",
        also="t-0",
        plan=True,
        places=True,
        more=(0, 1),
    ),
)
def _heavier_partition() -> Scene:
    scene = _Workers({"t": 6}, {"a": "t", "b": "t"}).own({"a": "t-[012]", "b": "t-[345]"})
    scene.report("a b")
    scene.set("t-*", arrives=400, seconds=0.019)
    scene.set("t-[12]", arrives=700).set("t-0", arrives=2_000)
    return scene.run(45)


@_story(
    "banzaicloud/koperator/issues/887",
    "Lag accumulates in one partition, because each of its records needs a long database insert. "
    "As many records arrive there as elsewhere.",
    Right(
        "1,200 records a minute of 60 ms each are 72 seconds of work a minute for one consumer.",
        "hot partition",
        names="t-2",
        also="b t-3",
        plan=None,
        more=(None,),
    ),
)
def _records_of_one_partition_take_long() -> Scene:
    scene = _Workers({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-[01]", "b": "t-[23]"})
    scene.report("a b")
    scene.set("t-*", arrives=1_200, seconds=0.004).set("t-2", seconds=0.06)
    return scene.run(45)


@_story(
    "spring-projects/spring-kafka/pull/2263",
    "Some records of a partition fail, and the consumer's thread sleeps ten seconds before it "
    "retries them. Its other partitions wait as well.",
    Right(
        "b needs 61 seconds a minute, 52 of them for t-3; a needs 14 and can take the two others.",
        "unbalanced|slow member",
        names="b",
        also="t-3",
        plan=True,
        places=True,
        more=(0,),
    ),
)
def _sleeps_between_retries() -> Scene:
    scene = _Workers({"t": 6}, {"a": "t", "b": "t"}).own({"a": "t-[012]", "b": "t-[345]"})
    scene.report("a b")
    scene.set("t-*", arrives=900, seconds=0.005).set("t-3", seconds=0.058)
    scene.run(50)

    def spread(question: dict[str, Any]) -> None:
        for sample in question["snapshots"]:
            report = sample["reports"]["partitions"]["t"][3]
            if report is not None:
                report["busy_squares_s2"] = 10.0 * report["busy_s"]

    return scene.edit(spread)


@_story(
    "dotnetcore/CAP/issues/1587",
    "Other processes on the machine of one consumer take its processor. Its records take three "
    "times as long as before, in all four partitions.",
    Right(
        "c needs 96 seconds a minute at 30 ms, where it needed 32; a and b still need 32.",
        "slow member",
        names="c",
        also="t-8 t-9 t-10 t-11",
        plan=True,
        places=True,
        more=(0,),
    ),
)
def _processor_taken_by_others() -> Scene:
    scene = _Workers({"t": 12}, dict.fromkeys("abc", "t"))
    scene.own({"a": "t-[0-3]", "b": "t-[4-7]", "c": "t-8 t-9 t-10 t-11"})
    scene.report("a b c")
    scene.set("t-*", arrives=800, seconds=0.01).run(20)
    scene.set("t-8 t-9 t-10 t-11", seconds=0.03)
    return scene.run(40)


@_story(
    "fasten-project/fasten/pull/183",
    "A consumer runs out of memory two minutes after each start and takes three minutes to come "
    "back, under the same name. Between starts it is as fast as the other.",
    Right(
        "b reads 2,400 a minute for two minutes of five, 960 on average; 1,200 arrive.",
        "slow member|unbalanced",
        names="b",
        also="t-3 t-4 t-5",
        plan=None,
    ),
)
def _out_of_memory_every_five_minutes() -> Scene:
    scene = _Workers({"t": 6}, {"a": "t", "b": "t"}).own({"a": "t-[012]", "b": "t-[345]"})
    scene.report("a b")
    scene.set("t-*", arrives=400, seconds=0.02375)
    for start in range(11):
        scene.limit("t-[345]", inf).run(2)
        scene.limit("t-[345]", 0).run(3)
        scene.edit(_silent("b", 5 * start + 2, 5 * start + 5))
        scene.report("b")
    return scene.limit("t-[345]", inf).run(2)


@_story(
    "joekiller/logstash-kafka/issues/55",
    "A client decodes records so slowly that it needs most of the time itself. Handlers are hardly "
    "busy, and the consumers never wait.",
    Right(
        "3,200 a minute arrive and two consumers read 2,600, without waiting; three read 3,900.",
        "overloaded",
        more=(1, 2),
    ),
)
def _client_needs_the_time() -> Scene:
    scene = _Workers({"t": 8}, {"a": "t", "b": "t"}).own({"a": "t-[0-3]", "b": "t-[4-7]"})
    scene.report("a b")
    scene.set("t-*", arrives=400, seconds=0.004)
    scene.limit("t-*", 325).run(50)

    def never_waits(question: dict[str, Any]) -> None:
        for sample in question["snapshots"]:
            for report in sample["reports"]["consumers"].values():
                report["waiting_s"] = 0.01 * report["elapsed_s"]

    return scene.edit(never_waits)


# Stories with misleading reports of work


@_story(
    "dpkp/kafka-python/issues/1707",
    "A producer aborts most of its transactions. Offsets advance five times as fast as the "
    "application gets records.",
    Right(
        "Both consumers read all that arrives in every sample, and work 60 % of the time.",
        "healthy",
        never=("overloaded",),
    ),
)
def _aborted_transactions() -> Scene:
    scene = _Workers({"t": 6}, {"a": "t", "b": "t"}).own({"a": "t-[012]", "b": "t-[345]"})
    scene.report("a b")
    scene.set("t-*", arrives=3_000, seconds=0.004).run(75)

    def fifth_has_records(question: dict[str, Any]) -> None:
        for sample in question["snapshots"]:
            for report in filter(None, sample["reports"]["partitions"]["t"]):
                report["records"] //= 5
                report["busy_squares_s2"] *= 5.0

    return scene.edit(fifth_has_records)


@_story(
    "confluentinc/kafka-connect-hdfs/issues/473",
    "A sink starts with a large backlog. Each task reads one of its partitions fast and neglects "
    "the other; in every run it is a different one. No task ever waits.",
    Right(
        "A task reads 57,000 a minute of both together and has 550,000 left: ten minutes, in "
        "whatever order.",
        "recovering",
        more=(0,),
        never=("stuck",),
    ),
)
def _neglected_for_a_while() -> Scene:
    scene = _Workers({"t": 6}, dict.fromkeys("abc", "t"))
    scene.own({"a": "t-[01]", "b": "t-[23]", "c": "t-[45]"})
    scene.report("a b c")
    scene.set("t-*", end=1_000_000, position=1_000_000, committed=1_000_000)
    scene.set("t-*", arrives=300, seconds=0.001).behind("t-*", 500_000)
    return scene.limit("t-1 t-2 t-5", 3_000).run(8)


@_story(
    "tulios/kafkajs/issues/1281",
    "A message needs a second, nearly all of it waiting for a service. A consumer works on several "
    "partitions at once, so its handlers together report more time than has passed.",
    Right(
        "Both consumers read all that arrives, in every sample.",
        "healthy",
        never=("stuck", "overloaded", "% of its capacity"),
    ),
)
def _several_messages_at_once() -> Scene:
    scene = _Workers({"t": 10}, {"a": "t", "b": "t"}, busy_s=300.0)
    scene.own({"a": "t-[0-4]", "b": "t-[5-9]"})
    scene.report("a b")
    scene.set("t-*", arrives=40, seconds=1.0)
    return scene.run(60)


@_story(
    "debezium/debezium.github.io/pull/985",
    "A sink writes in batches. With few records its batches are small, and it is busy for 80 % of "
    "its time; with many it would be no busier. It keeps up.",
    Right(
        "The group is at its end in every sample, whatever share of the time it is busy.",
        "healthy",
        more=(0,),
    ),
)
def _busy_with_small_batches() -> Scene:
    scene = _Workers({"t": 6}, {"a": "t", "b": "t"}).own({"a": "t-[012]", "b": "t-[345]"})
    scene.report("a b")
    scene.set("t-*", arrives=200, seconds=0.08)
    return scene.run(60)


@_story(
    "getsentry/sentry-docs/pull/15131",
    "After suspend and resume, the clock of a consumer's machine is nine hours behind. It reads "
    "all that arrives.",
    Right("Every sample shows the group at its end.", "healthy", never=("stuck",)),
)
def _clock_nine_hours_behind() -> Scene:
    scene = _Workers({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-[01]", "b": "t-[23]"})
    scene.report("a b")
    scene.set("t-*", arrives=600, seconds=0.01).run(15)
    scene.reporters["b"].ahead_s = -32_400.0
    return scene.run(45)


@_story(
    "confluentinc/librdkafka/issues/4742",
    "A rebalance moves an idle partition. Its last report is of the previous owner, as the new one "
    "has had nothing to commit.",
    Right("Nothing has arrived in t-1 since; the others are read.", "healthy", never=("slow",)),
)
def _last_report_of_the_previous_owner() -> Scene:
    scene = _Workers({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-[01]", "b": "t-[23]"})
    scene.report("a b")
    scene.set("t-*", arrives=300, seconds=0.02).set("t-1", seconds=0.09).run(12)
    scene.set("t-1", arrives=0).run(3)
    scene.own({"b": "t-1"})
    return scene.run(35)


@_story(
    "eclipse-hono/hono/issues/2871",
    "A static member's container is restarted. Nobody gets its partitions meanwhile. It is back "
    "after eight minutes, with counters that begin at zero.",
    Right(
        "c read 5,700 in the last minute, and 1,200 arrive: back within two minutes.",
        "recovering",
        more=(0,),
        never=("stuck",),
    ),
)
def _static_member_restarted() -> Scene:
    scene = _Workers({"t": 6}, dict.fromkeys("abc", "t"))
    scene.own({"a": "t-[01]", "b": "t-[23]", "c": "t-[45]"})
    scene.report("a b c")
    scene.set("t-*", arrives=600, seconds=0.01).run(30)
    scene.limit("t-[45]", 0).run(8)
    scene.edit(_silent("c", 30, 38)).report("c")
    return scene.limit("t-[45]", inf).run(1)


@_story(
    "confluentinc/kafka/issues/101",
    "A group starts again at the beginning of a compacted topic, where one offset in twenty is "
    "left. Its commits advance much faster than its records.",
    Right(
        "57,000 offsets a minute are passed, 240,000 are left: back in five minutes.",
        "recovering",
        more=(0,),
        never=("stuck",),
    ),
)
def _compacted_topic_read_again() -> Scene:
    scene = _Workers({"t": 3}, dict.fromkeys("abc", "t"))
    scene.own({"a": "t-0", "b": "t-1", "c": "t-2"})
    scene.report("a b c")
    scene.set("t-*", end=1_000_000, position=1_000_000, committed=1_000_000)
    scene.set("t-*", arrives=600, seconds=0.02).run(20)
    scene.set("t-*", seconds=0.001).behind("t-*", 420_000)
    scene.run(3)

    def one_in_twenty(question: dict[str, Any]) -> None:
        samples = question["snapshots"]
        for number in range(3):
            before = samples[20]["reports"]["partitions"]["t"][number]["records"]
            for sample in samples[21:]:
                report = sample["reports"]["partitions"]["t"][number]
                report["records"] = before + (report["records"] - before) // 20

    return scene.edit(one_in_twenty)


# Stories of groups that revealed a fault of the analysis


def _x_alone_subscribes(reporting: str) -> Scene:
    scene = _Workers({"A": 4, "B": 4}, {"x": "A B", "y": "A", "z": "A"})
    scene.own({"x": "B-*", "y": "A-[01]", "z": "A-[23]"}).report(reporting)
    scene.set("A-*", arrives=200, seconds=0.0285).set("B-*", arrives=800, seconds=0.0285)
    return scene.behind("B-*", 3_000).run(50)


@_story(
    "confluentinc/librdkafka/issues/2847",
    "Instances of a group subscribe to different topics: only x to B, which is too much for it. y "
    "and z, which read A, have time.",
    Right(
        "3,200 a minute arrive in B and x reads 2,000; nobody else may read B, so a second "
        "consumer of B is needed.",
        "overloaded",
        more=(1,),
    ),
)
def _one_subscriber_of_a_heavy_topic() -> Scene:
    return _x_alone_subscribes("")


@_story(
    "confluentinc/librdkafka/issues/2847",
    "The same group, whose consumers report their work.",
    Right(
        "3,200 a minute of 28.5 ms each are 91 seconds of work a minute for x alone.",
        "overloaded",
        more=(1,),
    ),
)
def _one_subscriber_of_a_heavy_topic_reports() -> Scene:
    return _x_alone_subscribes("x y z")


@_story(
    "apache/beam/issues/30539",
    "A job commits to Kafka with each of its checkpoints, every five minutes for an hour. Then no "
    "commit comes for 40 minutes, while records arrive as before.",
    Right(
        "Eight commits are missing: whether the job reads anything is unknown.",
        "unknown",
        never=("stuck",),
    ),
)
def _checkpoints_no_longer_commit() -> Scene:
    scene = _Workers({"t": 6}, dict.fromkeys("abc", "t"))
    scene.own({"a": "t-[01]", "b": "t-[23]", "c": "t-[45]"})
    scene.set("t-*", arrives=600, seconds=0.01, commit_every=5).run(60)
    return scene.set("t-*", commits=False).run(40)


@_story(
    "Blizzard/node-rdkafka/issues/422",
    "Messages take longer and longer in every consumer: 20 ms for 20 minutes, then 25, 30, 35 and "
    "40 ms, for eight minutes each.",
    Right(
        "1,600 a minute arrive for each consumer, and at 40 ms it reads 1,425; another consumer "
        "helps if what they share allows it.",
        "overloaded",
        more=(1, 2, 3),
    ),
)
def _slower_step_by_step() -> Scene:
    scene = _Workers({"t": 6}, dict.fromkeys("abc", "t"))
    scene.own({"a": "t-[01]", "b": "t-[23]", "c": "t-[45]"}).report("a b c")
    scene.set("t-*", arrives=800, seconds=0.02).run(20)
    for milliseconds in (25, 30, 35, 40):
        scene.set("t-*", seconds=milliseconds / 1_000).run(8)
    return scene
