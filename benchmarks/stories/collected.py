"""More groups from public reports, with kinds of events that `reported` does not have.

Belongs here: what happened, and the right answers, written before the analysis was run. Belongs
elsewhere: the groups with which the analysis was developed (`reported`, `retold`).

Rates are records per minute, and offsets begin at 50,000. Unless a policy is given, the objective
is a minute, and the horizon half an hour.
"""

from typing import Final

from benchmarks.stories.answers import Right, Story
from benchmarks.stories.scene import Scene, stories_of

COLLECTED: Final[list[Story]] = []
_story: Final = stories_of(COLLECTED)


# Stories in which samples are missing, rare or spread over time


@_story(
    "danielqsj/kafka_exporter/issues/509",
    "Metrics come for two minutes, then not for five, and once not for an hour. The group reads "
    "all that arrives.",
    Right("Every sample shows the group at its end.", "healthy", never=("stuck",)),
)
def _exporter_with_gaps() -> Scene:
    scene = Scene({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-[01]", "b": "t-[23]"})
    scene.set("t-*", arrives=600, reads=3_000)
    for minutes in (5, 5, 60, 5, 5, 5):
        scene.run(minutes, sampled=False).run(2)
    return scene


@_story(
    "grafana/agent/issues/1671",
    "A large installation is scraped every ten minutes. Both consumers read three quarters of what "
    "arrives, for three hours.",
    Right(
        "2,400 a minute arrive and 1,800 are read; three consumers would read 2,700.",
        "overloaded",
        more=(1,),
    ),
)
def _scraped_every_ten_minutes() -> Scene:
    scene = Scene({"t": 6}, {"a": "t", "b": "t"}, every=10)
    scene.own({"a": "t-[012]", "b": "t-[345]"})
    return scene.set("t-*", arrives=400, reads=300).run(180)


@_story(
    "danielqsj/kafka_exporter/issues/76",
    "An exporter reads the ends first and the commits a moment later: lag is negative by some "
    "hundred records a partition in each sample.",
    Right(
        "Commits beyond an end that was read earlier are those of a group that keeps up.",
        "healthy",
        never=("created again", "stuck"),
    ),
)
def _negative_lag() -> Scene:
    scene = Scene({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-[01]", "b": "t-[23]"})
    return scene.set("t-*", arrives=12_000, reads=60_000, unseen=1_200).run(30)


# Stories with few records to read


@_story(
    "linkedin/Burrow/issues/38",
    "A few messages a day come; each is read and committed. One has come since the last commit.",
    Right("One record waits for less than a minute.", "healthy", never=("stuck",)),
)
def _few_messages_a_day() -> Scene:
    scene = Scene({"t": 2}, {"a": "t", "b": "t"}).own({"a": "t-0", "b": "t-1"})
    for minutes in (50, 70, 60, 40):
        scene["t-0"].end += 1
        scene.run(minutes)
    scene["t-0"].end += 1
    return scene.set("t-*", reads=0).run(1)


@_story(
    "SOHU-Co/kafka-node/issues/814",
    "A client commits the last record that it has read, not the next one to read: its lag stays 1. "
    "Each partition gets a record every five minutes.",
    Right(
        "The lag is 1 in every sample, however many records come.",
        "healthy",
        never=("stuck",),
    ),
)
def _lag_stays_one() -> Scene:
    scene = Scene({"t": 6}, {"a": "t", "b": "t"}).own({"a": "t-[012]", "b": "t-[345]"})
    return scene.set("t-*", arrives=0.2, reads=3_000, behind_end=1, committed=49_999).run(120)


# Stories in which members come and go


@_story(
    "spreedly/kaffe/issues/107",
    "A consumer runs out of memory three minutes after each start, before it commits. It comes "
    "back under a new name, and reads the same records again.",
    Right(
        "Nothing of two partitions was committed for 40 minutes; to move them moves the fault.",
        "unknown|stuck partition",
        more=(None, 0),
    ),
)
def _out_of_memory_before_the_commit() -> Scene:
    scene = Scene({"t": 4}, {"a": "t", "b14": "t"}).own({"a": "t-[01]", "b0": "t-[23]"})
    scene.set("t-*", arrives=600, reads=3_000).run(8).set("t-[23]", reads=0)
    for start in range(1, 15):
        scene.own({f"b{start}": "t-[23]"}).run(3)
    return scene


@_story(
    "grafana/tempo/pull/6575",
    "Each pod of a rollout leaves a static member behind that holds its partition for three "
    "minutes. The last one of three was replaced four minutes ago.",
    Right(
        "All partitions have owners that have read to the end.",
        "healthy",
        never=("stuck",),
    ),
)
def _rollout_of_static_members() -> Scene:
    scene = Scene({"t": 6}, {"new0": "t", "new1": "t", "new2": "t"})
    scene.own({"old0": "t-[01]", "old1": "t-[23]", "old2": "t-[45]"})
    scene.set("t-*", arrives=600, reads=6_000).run(15)
    for pod, parts in enumerate(("t-[01]", "t-[23]", "t-[45]")):
        scene.set(parts, reads=0).run(3).own({f"new{pod}": parts}).set(parts, reads=6_000).run(4)
    return scene


@_story(
    "PostHog/posthog/pull/34155",
    "At a deploy the consumption of all pods drops to nothing for twelve minutes. The new pods "
    "have other names, and read two and a half times as fast as records arrive.",
    Right(
        "The backlog of twelve minutes shrinks and is gone in four minutes.",
        "recovering",
        never=("stuck",),
    ),
)
def _deploy_stops_everything() -> Scene:
    scene = Scene({"t": 6}, {"new0": "t", "new1": "t", "new2": "t"})
    scene.own({"old0": "t-[01]", "old1": "t-[23]", "old2": "t-[45]"})
    scene.set("t-*", arrives=600, reads=1_500).run(20).set("t-*", reads=0).run(4)
    scene.set("t-*", owner=None).run(8)
    scene.own({"new0": "t-[01]", "new1": "t-[23]", "new2": "t-[45]"})
    return scene.set("t-*", reads=1_500).run(4)


@_story(
    "wurstmeister/kafka-docker/issues/750",
    "Processing takes longer than max.poll.interval.ms: every five minutes the group rebalances, "
    "partitions change hands, and no commit succeeds.",
    Right(
        "Nothing was committed for 40 minutes by anybody, whoever owned what.",
        "unknown|stuck partition",
    ),
)
def _rebalances_before_each_commit() -> Scene:
    scene = Scene({"t": 4}, {"a": "t", "b": "t"})
    scene.set("t-*", arrives=600, reads=3_000).own({"a": "t-[01]", "b": "t-[23]"}).run(8)
    scene.set("t-*", reads=0)
    for _ in range(4):
        scene.own({"a": "t-[23]", "b": "t-[01]"}).run(5)
        scene.own({"a": "t-[01]", "b": "t-[23]"}).run(5)
    return scene


@_story(
    "telstra/open-kilda/issues/2174",
    "A group rebalances all the time: of three minutes it reads for two, faster than records "
    "arrive, and has no owners in the third. It falls behind slowly.",
    Right(
        "4,800 a minute are read in two of three minutes, 3,200 on average, and 3,600 arrive.",
        "overloaded|unknown|unbalanced",
        plan=None,
        never=("stuck",),
    ),
)
def _rebalances_all_the_time() -> Scene:
    owners = {"a": "t-[01]", "b": "t-[23]", "c": "t-[45]"}
    scene = Scene({"t": 6}, dict.fromkeys("abc", "t")).own(owners)
    scene.set("t-*", arrives=600, reads=800)
    for _ in range(20):
        scene.set("t-*", owner=None).run(1).own(owners).run(2)
    return scene


@_story(
    "kedacore/keda/issues/4098",
    "While brokers are replaced, an autoscaler stops all consumers for two hours. They have been "
    "back for six minutes and read eight times as fast as records arrive.",
    Right(
        "11 of 17 minutes of reading are left.",
        "recovering",
        never=("stuck",),
    ),
)
def _scaled_to_zero() -> Scene:
    owners = {"a": "t-[01]", "b": "t-[23]"}
    scene = Scene({"t": 4}, {"a": "t", "b": "t"}).own(owners)
    scene.set("t-*", arrives=300, reads=2_400).run(10).set("t-*", owner=None).run(120)
    return scene.own(owners).run(6)


@_story(
    "dpkp/kafka-python/issues/675",
    "A job starts once an hour, reads what has come, and ends. Nobody is in the group between two "
    "runs.",
    Right(
        "An empty group can get no plan; every run has read all.",
        "healthy|recovering|unknown",
        never=("stuck",),
    ),
)
def _hourly_job() -> Scene:
    scene = Scene({"t": 3}, {}).set("t-*", arrives=100, reads=6_000)
    for _ in range(4):
        scene.own({"job": "t-*"}).run(3).set("t-*", owner=None).run(57)
    return scene


@_story(
    "https://paolopatierno.wordpress.com/2017/07/27/"
    "apache-kafka-consumer-groups-dont-use-them-in-the-wrong-way/",
    "An application assigns partitions itself and commits under a group id. Kafka sees commits "
    "of a group that has no members.",
    Right(
        "Its commits reach the end in every sample; no plan can reach it.",
        "healthy|unknown",
        never=("stuck",),
    ),
)
def _assigns_by_itself() -> Scene:
    scene = Scene({"t": 3}, {}).own({"app": "t-*"}).set("t-*", arrives=600, reads=6_000)
    scene.owners_shown = False
    return scene.run(30)


@_story(
    "IBM/sarama/issues/1739",
    "A topic grows from four partitions to six. The new ones are owned at once, stay empty for a "
    "quarter of an hour, and are then read like the others.",
    Right(
        "A partition without records needs no commit, and the first ones were committed.",
        "healthy",
        never=("stuck",),
    ),
)
def _new_partitions_stay_empty() -> Scene:
    scene = Scene({"t": 6}, {"a": "t", "b": "t"}).own({"a": "t-[014]", "b": "t-[235]"})
    scene.set("t-*", arrives=600, reads=3_000)
    scene.set("t-[45]", exists=False, arrives=0, end=0, position=0, committed=None).run(12)
    return scene.set("t-[45]", exists=True).run(15).set("t-[45]", arrives=50).run(8)


# Stories without commits


@_story(
    "getsentry/uptime-checker/issues/72",
    "Consumers read their whole partitions into memory at each start and never commit.",
    Right("Without a commit, their positions are unknown.", "unknown|healthy"),
)
def _never_commits_by_design() -> Scene:
    scene = Scene({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-[01]", "b": "t-[23]"})
    scene.set("t-*", begin=20_000, arrives=60, reads=6_000, committed=None, commits=False)
    return scene.run(40)


@_story(
    "spring-projects/spring-kafka/issues/497",
    "75,000 records come at once. The consumers take them all in one poll and commit after the "
    "last: for 25 minutes lag only grows, though they work.",
    Right(
        "Without commits, positions are unknown, and whether an assignment would help.",
        "unknown",
        never=("stuck",),
    ),
)
def _burst_in_one_poll() -> Scene:
    scene = Scene({"t": 8}, dict.fromkeys("abcd", "t"))
    scene.own({"a": "t-[01]", "b": "t-[23]", "c": "t-[45]", "d": "t-[67]"})
    scene.set("t-*", arrives=30, reads=400).run(15)
    for partition in scene.matching("t-*"):
        partition.end += 9_375
    return scene.set("t-*", commits=False).run(25)


@_story(
    "spring-projects/spring-kafka/issues/2337",
    "Two listeners of a service share a group id, each with a topic and two consumers. Those of "
    "one topic exceed the poll interval and stop; the other topic is read.",
    Right(
        "c and d commit nothing for 20 minutes; a and b do not subscribe to their topic.",
        "unknown",
        names="c d",
        more=(None, 0),
    ),
)
def _one_of_two_listeners_stops() -> Scene:
    scene = Scene({"one": 4, "two": 4}, {"a": "one", "b": "one", "c": "two", "d": "two"})
    scene.own({"a": "one-[01]", "b": "one-[23]", "c": "two-[01]", "d": "two-[23]"})
    scene.set("*", arrives=600, reads=3_000).run(12)
    return scene.set("two-*", reads=0).run(20)


# Stories about a single partition


@_story(
    "Parsely/pykafka/issues/102",
    "A record is larger than a consumer fetches: its partition stands. Nothing comes in the "
    "other partition of this consumer.",
    Right(
        "Its owner has nothing else to commit: either the owner or the partition is the cause.",
        "unknown|stuck partition",
        more=(None, 0),
    ),
)
def _too_large_and_nothing_else_to_read() -> Scene:
    scene = Scene({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-[01]", "b": "t-[23]"})
    scene.set("t-[123]", arrives=300, reads=3_000).run(10)
    return scene.set("t-1", reads=0).run(25)


@_story(
    "typelevel/fs2-kafka/issues/1230",
    "A partition is stuck. Restarts give it to another consumer every twelve minutes, and it "
    "stands there as well.",
    Right(
        "Three owners did not commit it, and committed their other partitions.",
        "stuck partition",
        names="t-5",
        more=(None, 0),
    ),
)
def _stuck_whoever_owns_it() -> Scene:
    scene = Scene({"t": 6}, dict.fromkeys("abc", "t"))
    scene.own({"a": "t-[01]", "b": "t-[23]", "c": "t-[45]"})
    scene.set("t-*", arrives=600, reads=3_000).run(6).set("t-5", reads=0).run(10)
    return scene.own({"a": "t-5"}).run(12).own({"b": "t-5"}).run(12)


@_story(
    "confluentinc/librdkafka/issues/1729",
    "Of 200 partitions two wait for up to half a minute until they are fetched, now and again. "
    "All others are a second behind.",
    Right("Half a minute is within the objective.", "healthy", never=("stuck", "throttled")),
)
def _two_of_two_hundred() -> Scene:
    scene = Scene({"t": 200}, dict.fromkeys("abcd", "t"))
    scene.own({"a": "t-?", "b": "t-??", "c": "t-1??"}).set("t-*", arrives=600, reads=6_000)
    for reads in (300, 6_000, 350, 750, 6_000, 300, 700, 6_000) * 4:
        scene.set("t-50 t-99", reads=reads).run(1)
    return scene.set("t-50 t-99", reads=300).run(1)


@_story(
    "confluentinc/librdkafka/issues/1395",
    "Nothing is written any more, and consumers work off what is left: of its two partitions each "
    "consumer reads one, then the other, for eight minutes in turn.",
    Right(
        "Each was read in its turn; all is read in eight minutes.",
        "recovering",
        never=("stuck", "throttled"),
    ),
)
def _reads_in_turns() -> Scene:
    scene = Scene({"t": 6}, dict.fromkeys("abc", "t"))
    scene.own({"a": "t-[01]", "b": "t-[23]", "c": "t-[45]"})
    scene.set("t-*", end=250_000)
    for turn in ("t-[024]", "t-[135]") * 3:
        scene.set("t-*", reads=0).set(turn, reads=6_500).run(8)
    return scene.set("t-*", reads=0).set("t-[024]", reads=6_500).run(6)


@_story(
    "confluentinc/confluent-kafka-dotnet/issues/1324",
    "A consumer reads two topics. A burst in one takes nearly all of its time; the records of the "
    "other, few as they are, wait until the burst is read.",
    Right(
        "Five of nine minutes of reading are left; the small topic is read all the time, slowly.",
        "recovering|unbalanced",
        plan=None,
        never=("stuck",),
    ),
)
def _prefers_the_backlog() -> Scene:
    scene = Scene({"big": 2, "small": 4}, {"a": "big small", "b": "big small"})
    scene.own({"a": "big-0 small-[01]", "b": "big-1 small-[23]"})
    scene.set("*", arrives=300, reads=6_000).run(20)
    scene["big-0"].end += 50_000
    return scene.set("big-0", reads=5_700).set("small-[01]", reads=150).run(4)


@_story(
    "confluentinc/confluent-kafka-dotnet/issues/1691",
    "After a rebalance one of 60 partitions is 60,000 records behind, at records three days old. "
    "Its consumer reads them beside its two other partitions.",
    Right(
        "40,000 records are left and 5,000 a minute are read: gone in eight minutes.",
        "recovering",
        never=("stuck",),
    ),
)
def _one_of_sixty_thrown_back() -> Scene:
    scene = Scene({"t": 60}, {f"c{number}": "t" for number in range(20)})
    scene.own({f"c{number % 20}": f"t-{number}" for number in range(20)})
    for number in range(20, 60):
        scene.own({f"c{number % 20}": f"t-{number}"})
    scene.set("t-*", arrives=1_000, reads=6_000).run(15).behind("t-7", 60_000)
    return scene.run(4)


@_story(
    "lsst-uk/Lasair_cycle3/issues/34",
    "One of four mirroring consumers does 20 records a minute from the one partition it has. A "
    "restart clears it; its peers are fine.",
    Right(
        "A consumer with one partition: its peers did 3,000 a minute of theirs, and nobody else "
        "has read t-2 since.",
        "slow member|throttled partition",
        names="",
        also="c t-2",
        plan=None,
    ),
)
def _one_mirror_crawls() -> Scene:
    scene = Scene({"t": 4}, dict.fromkeys("abcd", "t"))
    scene.own({"a": "t-0", "b": "t-1", "c": "t-2", "d": "t-3"})
    scene.set("t-*", arrives=400, reads=3_000).behind("t-*", 12_000).run(10)
    return scene.set("t-2", reads=20).run(30)


@_story(
    "PhVHoang/TIL/issues/243",
    "The records of one partition take eight times as long as usual. Its consumer falls behind "
    "with all it has; another has half of its time to spare.",
    Right(
        "a does 760 records a minute of 850; b gets 1,200 and did 2,400 while it had a backlog.",
        "unbalanced|slow member",
        names="a",
        also="t-0 t-1",
        plan=True,
    ),
)
def _large_records_in_one_partition() -> Scene:
    scene = Scene({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-[01]", "b": "t-[23]"})
    scene.set("t-0", arrives=250, reads=220).set("t-1", arrives=600, reads=540)
    return scene.set("t-[23]", arrives=600, reads=1_200).behind("t-[23]", 6_000).run(40)


# Stories about retention and offset resets


@_story(
    "confluentinc/confluent-kafka-dotnet/issues/2009",
    "Retention overtakes a consumer that reads 1,000 of 1,800 records, and auto.offset.reset is "
    "latest: it jumps to the end, and falls behind again. The last jump was ten minutes ago.",
    Right(
        "It falls behind by 800 records a minute between two jumps; records skipped are not read.",
        "overloaded",
        more=(1,),
    ),
)
def _retention_and_latest() -> Scene:
    scene = Scene({"t": 2}, {"a": "t"}, policy={"auto_offset_reset": "latest"}).own({"a": "t-*"})
    scene.set("t-*", arrives=900, reads=500, keeps=10_000, begin=40_000)
    for minutes in (25, 25, 10):
        scene.behind("t-*", 0).run(minutes)
    return scene


@_story(
    "practo/tipoca-stream/issues/119",
    "After a rebalance the group finds no commit for two partitions and starts at their oldest "
    "records, of two days. Both have the same owner, others hardly work.",
    Right(
        "a alone needs more than half an hour; with b's and c's help it takes half of it.",
        "unbalanced",
        names="a",
        also="t-0 t-1",
        plan=True,
        never=("stuck",),
    ),
)
def _back_to_the_oldest() -> Scene:
    scene = Scene({"t": 6}, dict.fromkeys("abc", "t"))
    scene.own({"a": "t-[01]", "b": "t-[23]", "c": "t-[45]"})
    scene.set("t-*", arrives=300, reads=3_000).run(12).behind("t-[01]", 60_000)
    return scene.set("t-[01]", reads=1_500).run(8)


@_story(
    "aio-libs/aiokafka/issues/71",
    "A group starts at the beginning of a compacted topic, where few offsets have a record: "
    "commits rush along. At the end every offset is a record, and the group falls behind.",
    Right(
        "1,800 a minute are read of 2,000 for 40 minutes; offsets without records say nothing.",
        "overloaded",
        more=(1,),
    ),
)
def _compacted_history() -> Scene:
    scene = Scene({"t": 6}, {"a": "t", "b": "t"}).own({"a": "t-[012]", "b": "t-[345]"})
    scene.set("t-*", arrives=333, end=250_000, reads=20_000).run(11)
    return scene.set("t-*", reads=300).run(40)


# Stories of groups with too much work, temporarily or permanently


@_story(
    "apache/druid/pull/10524",
    "Every evening more arrives than can be read, for two hours; then the backlog is worked off. "
    "Most of it is read by now.",
    Right(
        "The backlog shrinks by 2,000 a minute, and is gone in 18 minutes, as yesterday.",
        "recovering",
        never=("stuck",),
    ),
)
def _after_the_daily_peak() -> Scene:
    scene = Scene({"t": 4}, {"a": "t", "b": "t"}, every=5)
    scene.own({"a": "t-[01]", "b": "t-[23]"}).set("t-*", reads=1_000)
    scene.set("t-*", arrives=500).run(120).set("t-*", arrives=1_200).run(120)
    scene.set("t-*", arrives=500).run(1_200).set("t-*", arrives=1_200).run(120)
    return scene.set("t-*", arrives=500).run(33)


@_story(
    "confluentinc/kafka-connect-elasticsearch/issues/238",
    "Elasticsearch becomes slow, and all five tasks of a sink with it: they wrote all that came, "
    "and write two thirds of it since an hour.",
    Right(
        "All five are as slow as each other: none has room, and none is slower than its peers.",
        "overloaded",
        never=("slow member",),
    ),
)
def _slow_for_all() -> Scene:
    scene = Scene({"t": 10}, dict.fromkeys("abcde", "t"))
    scene.own({"a": "t-[01]", "b": "t-[23]", "c": "t-[45]", "d": "t-[67]", "e": "t-[89]"})
    scene.set("t-*", arrives=600, reads=3_000).behind("t-*", 6_000).run(20)
    return scene.set("t-*", reads=400).run(60)


@_story(
    "confluentinc/kafka-connect-elasticsearch/issues/352",
    "A task of a sink is restarted and is 25 times as slow from then on. The other two do "
    "what they did.",
    Right(
        "b does 400 a minute where a and c have done 10,000.",
        "slow member",
        names="b",
        also="t-2 t-3",
        plan=True,
    ),
)
def _slow_since_its_restart() -> Scene:
    scene = Scene({"t": 6}, dict.fromkeys("abc", "t"))
    scene.own({"a": "t-[01]", "b": "t-[23]", "c": "t-[45]"})
    scene.set("t-*", arrives=1_000, reads=5_000).behind("t-*", 30_000).run(15)
    scene.set("t-[23]", owner=None).run(1).own({"b": "t-[23]"})
    return scene.set("t-[23]", reads=200).run(25)


@_story(
    "sentry-kubernetes/charts/issues/827",
    "A topic of three partitions has five consumers: two own nothing. The three that do read two "
    "thirds of what arrives.",
    Right(
        "Each partition has a consumer of its own; further consumers would get none.",
        "overloaded|hot partition",
        more=(None, 0),
    ),
)
def _spare_consumers() -> Scene:
    scene = Scene({"t": 3}, dict.fromkeys("abcde", "t")).own({"a": "t-0", "b": "t-1", "c": "t-2"})
    return scene.set("t-*", arrives=900, reads=600).run(40)


# Stories of consumers that report work


@_story(
    "karafka/karafka/issues/1611",
    "Clocks drift: one consumer's is seven minutes ahead and is set right in between. Consumers "
    "report their work; the records of one partition take eight times as long.",
    Right(
        "a works all the time and falls behind; b works for half of it.",
        "unbalanced",
        names="a",
        also="t-0 t-1",
        plan=True,
    ),
)
def _clocks_drift() -> Scene:
    scene = Scene({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-[01]", "b": "t-[23]"})
    scene.set("t-0", arrives=250, reads=215, seconds=0.2).report("a b")
    scene.set("t-1", arrives=600, reads=520, seconds=0.025)
    scene.set("t-[23]", arrives=600, reads=1_200, seconds=0.025)
    scene.reporters["b"].ahead_s = 420.0
    scene.run(20)
    scene.reporters["b"].ahead_s = 0.0
    return scene.run(20)


@_story(
    "knative-extensions/eventing-kafka/issues/691",
    "A consumer with a name of its own crashes every six minutes and restarts under this name; "
    "the last 200 records are read again. Consumers report their work.",
    Right(
        "All is read within the minute; counters that start again say nothing.",
        "healthy",
        never=("ignored", "stuck"),
    ),
)
def _counters_restart() -> Scene:
    scene = Scene({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-[01]", "b": "t-[23]"})
    scene.set("t-*", arrives=600, reads=1_200, seconds=0.025).report("a b")
    for _ in range(8):
        scene.run(6).report("a")
        for partition in scene.matching("t-[01]"):
            partition.position -= 200
    return scene.run(3)


@_story(
    "getsentry/uptime-checker/issues/58",
    "In the middle of a rollout one of three consumers reports its work and two do not yet. The "
    "one that does works all the time and falls behind; the others have room.",
    Right(
        "a gets 1,200 a minute and does 1,080; b and c get 300 each and do them.",
        "unbalanced",
        names="a",
        also="t-0 t-1",
        plan=True,
    ),
)
def _one_of_three_reports() -> Scene:
    scene = Scene({"t": 4}, dict.fromkeys("abc", "t")).own({"a": "t-[01]", "b": "t-2", "c": "t-3"})
    scene.set("t-[23]", arrives=300, reads=1_080)
    scene.set("t-[01]", arrives=600, reads=540, seconds=0.05)
    return scene.report("a").run(40)


# More stories, collected after the analysis had answered those above


@_story(
    "zendesk/ruby-kafka/pull/595",
    "A consumer that lost a partition keeps committing its old offset; the commit jumps between "
    "that and the true one from look to look.",
    Right(
        "Every other look shows the partition at its end.",
        "healthy|recovering|unknown",
        never=("stuck",),
    ),
)
def _two_commit_one_partition() -> Scene:
    scene = Scene({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-[01]", "b": "t-[23]"})
    scene.set("t-*", arrives=600, reads=3_000).run(12)
    old = scene["t-1"].committed
    for _ in range(10):
        scene.set("t-1", commits=True).run(1)
        scene.set("t-1", commits=False, committed=old).run(1)
    return scene


@_story(
    "twmb/franz-go/issues/770",
    "One of three brokers throttles fetches: of the three partitions of each consumer, the one "
    "that this broker leads falls behind, the others are read at once.",
    Right(
        "Each of the three is read slower than it fills by a consumer that has time for others.",
        "throttled partition",
        names="t-0 t-3 t-6",
        more=(None, 0),
    ),
)
def _one_broker_throttles() -> Scene:
    scene = Scene({"t": 9}, dict.fromkeys("abc", "t"))
    scene.own({"a": "t-[012]", "b": "t-[345]", "c": "t-[678]"})
    return scene.set("t-*", arrives=600, reads=6_000).set("t-[036]", reads=450).run(40)


@_story(
    "numaproj/numaflow/issues/1853",
    "An autoscaler adds two consumers to two that have fallen behind for 40 minutes. Eight minutes "
    "later a third of the backlog is read.",
    Right(
        "4,800 a minute are read of 3,200: the rest is gone in 12 minutes.",
        "recovering",
        never=("stuck",),
    ),
)
def _scaled_out_in_time() -> Scene:
    scene = Scene({"t": 8}, dict.fromkeys("abcd", "t")).own({"a": "t-[0123]", "b": "t-[4567]"})
    scene.set("t-*", arrives=400, reads=300).run(40).own({"c": "t-[23]", "d": "t-[67]"})
    return scene.set("t-*", reads=600).run(8)


@_story(
    "kedacore/keda/issues/7092",
    "An autoscaler takes two of four consumers away, because there is no lag. The two that stay "
    "read three quarters of what arrives, for 20 minutes.",
    Right(
        "3,200 a minute arrive, and two consumers read 2,400.",
        "overloaded",
        more=(1, 2),
    ),
)
def _scaled_in_too_far() -> Scene:
    scene = Scene({"t": 8}, {"a": "t", "b": "t"})
    scene.own({"a": "t-[01]", "b": "t-[23]", "c": "t-[45]", "d": "t-[67]"})
    scene.set("t-*", arrives=400, reads=600).run(30).own({"a": "t-[45]", "b": "t-[67]"})
    return scene.set("t-*", reads=300).run(20)


@_story(
    "ArroyoSystems/arroyo/pull/218",
    "A pipeline writes all between two checkpoints, ten minutes apart, in one transaction. Its "
    "readers read committed: a transaction is open nearly all the time.",
    Right(
        "The group has read all that can be read.",
        "healthy",
        never=("stuck",),
    ),
)
def _a_transaction_for_each_checkpoint() -> Scene:
    scene = Scene({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-[01]", "b": "t-[23]"})
    scene.set("t-*", arrives=300, reads=3_000)
    for minutes in (10, 10, 10, 10, 6):
        for partition in scene.matching("t-*"):
            partition.stable = partition.end
        scene.run(minutes)
    return scene


@_story(
    "seglo/kafka-lag-exporter/issues/121",
    "A job writes 8,000 records to each partition within seconds. The group is asked at the look "
    "behind it; it has never been busy.",
    Right(
        "One look with more does not tell what will come; each consumer keeps up with what usually "
        "comes.",
        "recovering|healthy",
    ),
)
def _a_dump_seen_once() -> Scene:
    scene = Scene({"t": 6}, dict.fromkeys("abc", "t"))
    scene.own({"a": "t-[01]", "b": "t-[23]", "c": "t-[45]"})
    scene.set("t-*", arrives=300, reads=1_000).run(40)
    for partition in scene.matching("t-*"):
        partition.end += 8_000
    return scene.run(1)


@_story(
    "typelevel/fs2-kafka/issues/1230",
    "A partition is stuck, and its consumer restarts every two minutes under a new name; in "
    "between another consumer has the partition for two minutes. All else is committed.",
    Right(
        "It was not committed for 40 minutes by anybody, and 24,000 records wait.",
        "stuck partition",
        names="t-5",
    ),
)
def _stuck_and_handed_to_and_fro() -> Scene:
    scene = Scene({"t": 6}, {"a": "t", "b": "t", "c9": "t"})
    scene.own({"a": "t-[01]", "b": "t-[23]", "c0": "t-[45]"})
    scene.set("t-*", arrives=600, reads=3_000).run(8).set("t-5", reads=0)
    for start in range(10):
        scene.own({"a": "t-5"}).run(2).own({f"c{start}": "t-[45]"}).run(2)
    return scene
