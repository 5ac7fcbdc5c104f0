"""Groups from public reports, simulated as scenes.

Belongs here: what happened, and the right answers, written before the analysis was run. Belongs
elsewhere: groups whose samples are stored as JSON (`retold`).

Rates are records per minute, and offsets begin at 50,000. Unless a policy is given, the objective
is a minute, and the horizon half an hour.
"""

from typing import Final

from benchmarks.stories.answers import Right, Story
from benchmarks.stories.scene import Scene, stories_of

REPORTED: Final[list[Story]] = []
_story: Final = stories_of(REPORTED)


# Stories in which positions decrease


@_story(
    "seglo/kafka-lag-exporter/issues/496",
    "A new group reads a topic from its beginning, eight times as fast as records arrive. The "
    "exporter showed years of lag while 45 minutes of reading were left.",
    Right(
        "The backlog shrinks in every sample and will be gone in a quarter of an hour.",
        "recovering",
        never=("stuck", "committed nothing"),
    ),
)
def _reads_from_the_beginning() -> Scene:
    scene = Scene({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-[01]", "b": "t-[23]"})
    scene.set("t-*", arrives=300, reads=2_400, position=0, committed=None, end=60_000)
    return scene.run(12)


@_story(
    "astubbs/parallel-consumer/issues/121",
    "Each rebalance throws the positions of some partitions back by 3,000 records. The consumers "
    "read them again within two minutes.",
    Right(
        "All records are read, for eight minutes now; records that were read twice are no backlog.",
        "healthy",
        never=("stuck", "not been committed"),
    ),
)
def _replays_after_rebalances() -> Scene:
    scene = Scene({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-[01]", "b": "t-[23]"})
    scene.set("t-*", arrives=600, reads=3_000).run(10)
    for again in ("t-[02]", "t-[13]", "t-[02]"):
        scene.behind(again, 3_000).run(8)
    return scene


@_story(
    "strimzi/strimzi-kafka-operator/issues/9269",
    "A topic is deleted and made again under the same name; its offsets begin at 0. For a moment "
    "commits lie far beyond the end, then the consumers start over and keep up.",
    Right(
        "The commits follow the new log to its end in every sample since.",
        "healthy",
        never=("stuck", "created again"),
    ),
)
def _topic_made_again() -> Scene:
    scene = Scene({"t": 3}, {"a": "t", "b": "t"}).own({"a": "t-[01]", "b": "t-2"})
    scene.set("t-*", arrives=600, reads=3_000).run(10)
    scene.set("t-*", end=0, reads=0).run(1)
    return scene.set("t-*", reads=3_000, position=0).run(20)


# Stories in which commits change at random


@_story(
    "kedacore/keda/issues/5675",
    "Producers write in transactions, and a marker ends each one. Consumers commit the last "
    "record, so that every partition is one offset short of its end; one of them is "
    "idle.",
    Right(
        "The idle partition is short of its end by the marker, as all others are at every commit.",
        "healthy",
        never=("stuck", "not been committed"),
    ),
)
def _transaction_markers() -> Scene:
    scene = Scene({"t": 3}, {"a": "t"}).own({"a": "t-*"}).set("t-*", behind_end=1, reads=6_000)
    return scene.set("t-2", end=50_001).set("t-[01]", arrives=600).run(30)


@_story(
    "linkedin/Burrow/issues/740",
    "Brokers restart, and for two minutes no commit of the group can be read. Lag looks like tens "
    "of millions, then it is what it was.",
    Right(
        "Commits before and after show that the group kept up all the time.",
        "healthy",
        never=("stuck", "committed nothing"),
    ),
)
def _commits_unreadable_for_a_moment() -> Scene:
    scene = Scene({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-[01]", "b": "t-[23]"})
    scene.set("t-*", arrives=600, reads=3_000).run(15)
    scene.commits_readable = False
    scene.run(2)
    scene.commits_readable = True
    return scene.run(10)


# Stories about empty partitions and deleted records


@_story(
    "redpanda-data/redpanda/issues/30624",
    "Retention has emptied a topic that nobody writes to any more. The group's old commit lies "
    "below its begin, and monitoring shows 800,000 records of lag.",
    Right(
        "Nothing is unread in an empty log, and the other topic is in time.",
        "healthy",
        never=("stuck", "records wait"),
    ),
)
def _emptied_topic() -> Scene:
    scene = Scene({"live": 2, "old": 2}, {"a": "live old"}).own({"a": "*"})
    scene.set("live-*", arrives=600, reads=3_000)
    scene.set("old-*", begin=7_000_000, end=7_000_000, position=7_000_000, committed=6_200_000)
    return scene.set("old-*", commits=False).run(25)


@_story(
    "criteo/kafka-sharp/issues/27",
    "A client commits an offset, retention deletes the record behind it, and the client asks for "
    "the deleted record again and again. New records come in and are not read.",
    Right(
        "New records wait for 20 minutes while the owner commits its other partitions.",
        "stuck partition",
        names="t-1",
    ),
)
def _asks_for_a_deleted_record() -> Scene:
    scene = Scene({"t": 3}, {"a": "t"}).own({"a": "t-*"}).set("t-*", arrives=60, reads=3_000)
    scene.set("t-1", arrives=0, reads=0, begin=52_000, end=52_000).run(5)
    return scene.set("t-1", arrives=60).run(25)


@_story(
    "united-manufacturing-hub/united-manufacturing-hub/pull/1856",
    "One consumer reads two thirds of what arrives. Retention deletes what it has not read; each "
    "time it starts again at the first record that is left, so that its commits follow the begin.",
    Right(
        "It reads 1,200 records a minute of 1,800; offsets that retention skipped were not read. A "
        "second consumer could take the other partition.",
        "overloaded",
        more=(1,),
    ),
)
def _retention_overtakes() -> Scene:
    scene = Scene({"t": 2}, {"a": "t"}).own({"a": "t-*"})
    scene.set("t-*", begin=41_000, end=100_000, position=41_500, committed=41_500, keeps=60_000)
    return scene.set("t-*", arrives=900, reads=600).run(40)


@_story(
    "apache/kafka/pull/11610",
    "Kafka Streams deletes the records of a repartition topic as soon as they are committed, so "
    "that the begin of each partition follows the commit.",
    Right(
        "Nothing is deleted before it was read.",
        "healthy",
        never=("lost", "loses", "deleted"),
    ),
)
def _streams_delete_what_is_read() -> Scene:
    scene = Scene({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-[01]", "b": "t-[23]"})
    scene.set("t-*", arrives=600, reads=3_000)
    for _ in range(25):
        scene.run(1)
        for partition in scene.matching("t-*"):
            partition.begin = partition.committed or 0
    return scene


# Stories in which commits expire


@_story(
    "confluentinc/librdkafka/issues/1442",
    "The commit of an idle partition expires on the broker. Later a few records come in; the "
    "consumer that lived all the time reads and commits them.",
    Right(
        "It stood at the end when the commit vanished, and new records were committed at once.",
        "healthy",
        never=("stuck", "records wait"),
    ),
)
def _expired_and_committed_again() -> Scene:
    scene = Scene({"t": 3}, {"a": "t"}).own({"a": "t-*"}).set("t-[01]", arrives=600, reads=3_000)
    scene.run(8).set("t-2", committed=None, commits=False).run(10)
    return scene.set("t-2", arrives=5, commits=True).run(2).set("t-2", arrives=0).run(6)


@_story(
    "confluentinc/librdkafka/issues/1102",
    "A whole group's topic has had no records for a long time. The broker forgets all of its "
    "commits; a monitor sees -1001 instead of an offset.",
    Right(
        "All partitions were read to the end, and nothing has come since.",
        "healthy",
        never=("stuck", "records wait"),
    ),
)
def _quiet_group_expires() -> Scene:
    scene = Scene({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-[01]", "b": "t-[23]"}).run(10)
    return scene.set("t-*", committed=None, commits=False).run(20)


# Stories of consumers that rarely commit


@_story(
    "snowflakedb/snowflake-kafka-connector/issues/661",
    "A sink uploads a file every five minutes and commits only then. Lag climbs to 25,000 records "
    "a partition and falls to nothing, twelve times an hour.",
    Right(
        "Every commit takes all that has arrived; what is behind is what the next upload will "
        "bring.",
        "healthy",
        never=("stuck", "not been committed"),
    ),
)
def _uploads_every_five_minutes() -> Scene:
    scene = Scene({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-[01]", "b": "t-[23]"})
    return scene.set("t-*", arrives=4_845, reads=20_000, commit_every=5).run(63)


@_story(
    "snowflakedb/snowflake-kafka-connector/issues/908",
    "Three sink tasks commit every ten minutes and write two thirds of what arrives, all alike. "
    "After four hours they are 80 minutes behind.",
    Right(
        "The samples hold 24 commits of each task, and each falls short of what arrived.",
        "overloaded",
    ),
)
def _slow_sink() -> Scene:
    scene = Scene({"t": 6}, {"a": "t", "b": "t", "c": "t"}, every=2)
    scene.own({"a": "t-[01]", "b": "t-[23]", "c": "t-[45]"})
    return scene.set("t-*", arrives=1_000, reads=650, commit_every=10).run(240)


@_story(
    "snowflakedb/snowflake-kafka-connector/issues/921",
    "A sink commits per 1,000 records. After a burst the last 200 records of a partition stay in "
    "its buffer until new ones come; for half an hour none do.",
    Right(
        "200 records are less than one usual commit of this sink.",
        "healthy",
        never=("stuck",),
    ),
)
def _rest_of_a_burst() -> Scene:
    scene = Scene({"t": 3}, {"a": "t"}).own({"a": "t-*"}).set("t-*", commit_by=1_000, reads=6_000)
    scene.set("t-[01]", arrives=1_200).run(5)
    scene["t-2"].end += 3_200
    return scene.run(32)


@_story(
    "snowflakedb/snowflake-kafka-connector/issues/798",
    "A sink filters nearly all records of a busy topic and commits only when one passes: five "
    "times in two hours, at no fixed interval.",
    Right(
        "Each commit lies at the end; between commits nobody can tell, and nothing says too much "
        "work.",
        "healthy|recovering|unknown",
        never=("stuck",),
    ),
)
def _filters_nearly_all() -> Scene:
    scene = Scene({"t": 3}, {"a": "t"}).own({"a": "t-*"})
    scene.set("t-*", arrives=600, reads=6_000, commits=False)
    now = 0
    for minute in (8, 31, 40, 77, 104):
        scene.run(minute - now - 1).set("t-*", commits=True).run(1).set("t-*", commits=False)
        now = minute
    return scene.run(8)


@_story(
    "seglo/kafka-lag-exporter/issues/121",
    "A job writes 12,000 records to each partition once an hour; the consumer works them off in "
    "four minutes. The exporter's time lag grows until the last record.",
    Right(
        "In two minutes all is read, as in each hour before.",
        "recovering|healthy",
        never=("stuck",),
    ),
)
def _hourly_dump() -> Scene:
    scene = Scene({"t": 3}, {"a": "t"}).own({"a": "t-*"}).set("t-*", reads=3_000).run(10)
    for minutes in (60, 60, 2):
        for partition in scene.matching("t-*"):
            partition.end += 12_000
        scene.run(minutes)
    return scene


# Stories about transactions


@_story(
    "twmb/franz-go/issues/581",
    "A transaction hangs for 15 minutes; its partition cannot be read to the end. Then it is "
    "ended, and the consumer reads the rest within four minutes.",
    Right(
        "All records are read; the standstill was the transaction's, and it is over.",
        "healthy",
        never=("stuck", "transaction has been open"),
    ),
)
def _transaction_ended() -> Scene:
    scene = Scene({"t": 3}, {"a": "t", "b": "t"}).own({"a": "t-[02]", "b": "t-1"})
    scene.set("t-*", arrives=600, reads=3_000).run(8)
    scene.set("t-2", stable=scene["t-2"].position).run(15)
    return scene.set("t-2", stable=None).run(12)


@_story(
    "softwaremill/klag-exporter/issues/104",
    "An open transaction holds one partition. The same consumer is too slow for its two other "
    "partitions, while another consumer has room.",
    Right(
        "Without the partition that cannot be read, a gets 1,800 a minute and does 1,500; b gets "
        "300 and has done 1,500.",
        "unbalanced",
        names="a",
        plan=True,
        never=("stuck",),
    ),
)
def _transaction_beside_a_late_member() -> Scene:
    scene = Scene({"t": 5}, {"a": "t", "b": "t"}).own({"a": "t-[012]", "b": "t-[34]"})
    scene.set("t-[01]", arrives=900, reads=750).set("t-2", arrives=300)
    scene.set("t-[34]", arrives=150, reads=750).behind("t-[34]", 6_000).run(2)
    return scene.set("t-2", stable=scene["t-2"].position).run(28)


# Stories about skipped backlogs, and pauses that have ended


@_story(
    "getsentry/snuba/issues/5509",
    "Bad records make one of two consumers crawl. The operators flush its queue by a reset to the "
    "latest offset; since then it reads all that arrives.",
    Right(
        "It has read 1,200 records a minute for half an hour, more than while it crawled.",
        "healthy",
    ),
)
def _flushed_the_queue() -> Scene:
    scene = Scene({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-[01]", "b": "t-[23]"})
    scene.set("t-*", arrives=600, reads=3_000).set("t-[01]", reads=180).run(12)
    return scene.behind("t-[01]", 0).set("t-*", reads=3_000).run(30)


@_story(
    "ClickHouse/clickhouse-kafka-connect/issues/651",
    "A connector restarts under load; for a quarter of an hour nothing is read. Then it reads "
    "half as much again as arrives.",
    Right(
        "The backlog shrinks by 300 records a minute and partition, and is gone in 18 minutes.",
        "recovering",
        never=("stuck",),
    ),
)
def _catches_up_after_a_restart() -> Scene:
    scene = Scene({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-[01]", "b": "t-[23]"})
    scene.set("t-*", arrives=600, reads=900).run(15).set("t-*", reads=0).run(15)
    return scene.set("t-*", reads=900).run(12)


@_story(
    "IBM/sarama/issues/2621",
    "A partition stands still for 20 minutes while its consumer reads others, and then continues. "
    "It has caught up ten minutes ago.",
    Right(
        "Nothing waits now; a standstill that is over is not a speed.",
        "healthy",
        never=("stuck",),
    ),
)
def _stood_and_went_on() -> Scene:
    scene = Scene({"t": 6}, {"a": "t", "b": "t", "c": "t"})
    scene.own({"a": "t-[01]", "b": "t-[23]", "c": "t-[45]"})
    scene.set("t-*", arrives=600, reads=6_000).run(5)
    return scene.set("t-3", reads=0).run(20).set("t-3", reads=6_000).run(12)


@_story(
    "apache/openwhisk/issues/2498",
    "One consumer leaves, and the whole group stands still in a rebalance: two samples show no "
    "owners and no commits. Then all goes on.",
    Right(
        "All partitions have owners that have read to the end for ten minutes.",
        "healthy",
        never=("stuck",),
    ),
)
def _rebalance_of_two_minutes() -> Scene:
    owners = {"a": "t-[01]", "b": "t-[23]"}
    scene = Scene({"t": 4}, {"a": "t", "b": "t"}).own(owners)
    scene.set("t-*", arrives=600, reads=3_000).run(12)
    return scene.set("t-*", owner=None).run(2).own(owners).run(10)


# Stories in which partitions or members make no progress at present


@_story(
    "kedacore/keda/issues/3904",
    "A record cannot be processed, and its partition is not committed any more. An autoscaler that "
    "counts its lag starts more and more consumers.",
    Right(
        "Its owner commits another partition all the time; more consumers do not help.",
        "stuck partition",
        names="t-3",
        more=(None, 0),
    ),
)
def _persistent_lag() -> Scene:
    scene = Scene({"t": 8}, {"a": "t", "b": "t", "c": "t", "d": "t"})
    scene.own({"a": "t-[01]", "b": "t-[23]", "c": "t-[45]", "d": "t-[67]"})
    scene.set("t-*", arrives=600, reads=3_000).run(5)
    return scene.set("t-3", reads=0).run(25)


@_story(
    "confluentinc/librdkafka/issues/2039",
    "A partition has an owner, records arrive, and there has never been a commit. The owner's "
    "other partitions have no lag.",
    Right(
        "1,500 records have come since the first sample, and none was committed, wherever the "
        "consumer began.",
        "stuck partition",
        names="t-2",
    ),
)
def _never_committed_though_records_arrive() -> Scene:
    scene = Scene({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-[012]", "b": "t-3"})
    scene.set("t-*", arrives=60, reads=3_000)
    return scene.set("t-2", end=40, position=0, committed=None, reads=0).run(25)


@_story(
    "atleon/atleon/issues/422",
    "After a rebalance a consumer keeps polling, but its partitions stay paused: it commits none "
    "of them for 20 minutes. Others go on.",
    Right(
        "From outside, a member that commits nothing may be working on anything.",
        "unknown",
        names="b",
    ),
)
def _silent_after_a_rebalance() -> Scene:
    scene = Scene({"t": 6}, {"a": "t", "b": "t", "c": "t"})
    scene.own({"a": "t-[01]", "b": "t-[23]", "c": "t-[45]"})
    scene.set("t-*", arrives=600, reads=3_000).run(12)
    return scene.set("t-[23]", reads=0).run(20)


@_story(
    "IBM/sarama/pull/3100",
    "A broker fails, and one partition has no leader: its offsets cannot be read for three "
    "minutes. All others are consumed.",
    Right(
        "The other partitions are in time; of this one nothing is known.",
        "healthy|unknown",
        never=("stuck",),
    ),
)
def _partition_without_a_leader() -> Scene:
    scene = Scene({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-[01]", "b": "t-[23]"})
    scene.set("t-*", arrives=600, reads=3_000).run(15)
    return scene.set("t-1", readable=False, arrives=0, reads=0).run(3)


# Stories about partitions without an owner


@_story(
    "icanbwell/fhir-server/pull/2539",
    "Two consumers share a group but subscribe to different topics. After a rebalance storm no "
    "member owns the first topic; its events wait for hours without an alert.",
    Right(
        "Partitions that nobody reads are not in time; a subscribes to them.",
        "!healthy",
        plan=True,
        places=True,
        says=("owner",),
    ),
)
def _nobody_owns_a_topic() -> Scene:
    scene = Scene({"requested": 3, "events": 3}, {"a": "requested", "b": "events"})
    scene.own({"b": "events-*"}).set("events-*", arrives=60).set("requested-*", arrives=2)
    return scene.run(20)


@_story(
    "twmb/franz-go/issues/366",
    "After a rollout some partitions have no consumer, and some consumers have no partition.",
    Right(
        "Two partitions fill with nobody to read them, and d has nothing to do.",
        "!healthy",
        plan=True,
        places=True,
        says=("owner",),
    ),
)
def _rollout_leaves_partitions() -> Scene:
    scene = Scene({"t": 6}, {"a": "t", "b": "t", "c": "t", "d": "t"})
    scene.own({"a": "t-0", "b": "t-1", "c": "t-[23]", "d": "t-[45]"})
    scene.set("t-*", arrives=300, reads=3_000).run(15)
    return scene.set("t-[45]", owner=None).run(8)


@_story(
    "segmentio/kafka-go/issues/646",
    "A topic grows from two partitions to four. The client notices, but joins the same generation "
    "again: nobody reads the new partitions, and no lag is shown.",
    Right(
        "Two partitions fill with nobody to read them.",
        "!healthy",
        plan=True,
        places=True,
        says=("owner",),
    ),
)
def _new_partitions_not_read() -> Scene:
    scene = Scene({"t": 4}, {"a": "t", "b": "t"}).own({"a": "t-0", "b": "t-1"})
    scene.set("t-*", arrives=300, reads=3_000)
    scene.set("t-[23]", exists=False, end=0, position=0, committed=None).run(15)
    return scene.set("t-[23]", exists=True).run(15)


# Stories of too much work, for one member or for all


@_story(
    "apache/openwhisk/pull/3337",
    "Two services share one group id. The consumers of one topic cannot keep up; those of the "
    "other have next to nothing to do, and do not subscribe to it.",
    Right(
        "2,400 a minute arrive for two consumers of 900; a third one of that service would do, "
        "and the other service's consumers cannot help.",
        "overloaded",
        more=(1,),
    ),
)
def _two_services() -> Scene:
    scene = Scene(
        {"orders": 6, "mail": 2}, {"a": "orders", "b": "orders", "c": "mail", "d": "mail"}
    )
    scene.own({"a": "orders-[012]", "b": "orders-[345]", "c": "mail-0", "d": "mail-1"})
    scene.set("mail-*", arrives=100).set("orders-*", arrives=400, reads=300)
    return scene.run(40)


@_story(
    "kedacore/keda/issues/3997",
    "Keys are skewed: one partition gets most of the records and has a consumer of its own. All "
    "other partitions have no lag, whatever number of consumers is started.",
    Right(
        "3,000 a minute arrive at one partition; no consumer has done more than 1,800.",
        "hot partition",
        names="t-0",
        more=(None, 0),
    ),
)
def _skewed_keys() -> Scene:
    scene = Scene({"t": 5}, {"a": "t", "b": "t", "c": "t"})
    scene.own({"a": "t-0", "b": "t-[12]", "c": "t-[34]"})
    scene.set("t-0", arrives=3_000, reads=1_800)
    scene.set("t-[1234]", arrives=100, reads=900).behind("t-[1234]", 6_000)
    return scene.run(40)


@_story(
    "confluentinc/librdkafka/issues/3170",
    "A group reads many topics of one partition each. The range assignor gives all of them to the "
    "first consumer; the others idle.",
    Right(
        "a gets 2,400 a minute and does 1,800, while b and c own nothing.",
        "unbalanced",
        names="a",
        plan=True,
    ),
)
def _range_over_many_topics() -> Scene:
    topics = {"carts": 1, "clicks": 1, "pays": 1, "views": 1}
    scene = Scene(topics, dict.fromkeys("abc", " ".join(topics))).own({"a": "*"})
    return scene.set("*", arrives=600, reads=450).run(30)


@_story(
    "confluentinc/librdkafka/issues/1745",
    "One consumer is extremely slow. Its partitions back up although other consumers of the group "
    "are ready for work.",
    Right(
        "a does 500 a minute; b and c have done 1,600 each with the same records.",
        "slow member",
        names="a",
        also="t-0 t-1",
        plan=True,
    ),
)
def _slow_consumer() -> Scene:
    scene = Scene({"t": 6}, {"a": "t", "b": "t", "c": "t"})
    scene.own({"a": "t-[01]", "b": "t-[23]", "c": "t-[45]"})
    scene.set("t-*", arrives=400, reads=800).behind("t-[2345]", 6_000)
    return scene.set("t-[01]", reads=250).run(40)


@_story(
    "getsentry/snuba/issues/5796",
    "Both partitions of a topic fall behind, each with a consumer of its own. The topic beside it, "
    "with another consumer, is fine.",
    Right(
        "Each of the two has all of a consumer; a further one would get no partition.",
        "overloaded|hot partition",
        more=(None, 0),
    ),
)
def _every_partition_is_short() -> Scene:
    scene = Scene({"events": 1, "outcomes": 2}, {"a": "events", "b": "outcomes", "c": "outcomes"})
    scene.own({"a": "events-*", "b": "outcomes-0", "c": "outcomes-1"})
    scene.set("events-*", arrives=100).set("outcomes-*", arrives=500, reads=300)
    return scene.run(40)


@_story(
    "confluentinc/librdkafka/issues/1623",
    "Two partitions fall further and further behind, while the same consumer reads others at once "
    "and its threads are idle.",
    Right(
        "The owner reads 3,600 a minute elsewhere at once: something else holds these two back.",
        "throttled partition",
        names="t-2 t-3",
    ),
)
def _starved_by_the_fetcher() -> Scene:
    scene = Scene({"t": 6}, {"a": "t", "b": "t"}).own({"a": "t-[0123]", "b": "t-[45]"})
    scene.set("t-[01]", arrives=1_800, reads=6_000).set("t-[23]", arrives=600, reads=400)
    return scene.set("t-[45]", arrives=600, reads=6_000).run(40)


@_story(
    "https://alibabacloud.com/help/en/apsaramq-for-kafka/cloud-message-queue-for-kafka/support/"
    "why-are-messages-in-different-partitions-consumed-at-different-points-in-time-with-an-obvious-lag",
    "Twelve equal partitions, five equal consumers: two of them have three partitions and fall "
    "behind, three have two and keep up.",
    Right(
        "Somebody must have three, 1,800 a minute, and nobody does more than 1,500; six consumers "
        "would have two each.",
        "overloaded|unbalanced",
        plan=None,
        more=(1,),
    ),
)
def _twelve_over_five() -> Scene:
    scene = Scene({"t": 12}, dict.fromkeys("abcde", "t"))
    scene.own({"a": "t-[012]", "b": "t-[345]", "c": "t-[67]", "d": "t-[89]", "e": "t-1[01]"})
    scene.set("t-*", arrives=600, reads=750).behind("t-[6789] t-1[01]", 3_000)
    return scene.set("t-[012345]", reads=500).run(40)


# Stories of groups that are behind by design


@_story(
    "reactor/reactor-kafka/issues/89",
    "A consumer takes records from retry topics only when they are five minutes old. The policy "
    "allows ten minutes.",
    Right(
        "The retry topic is five minutes behind in every sample, within the objective.",
        "healthy",
        never=("stuck",),
    ),
)
def _delayed_retries() -> Scene:
    scene = Scene({"main": 2, "retry": 2}, {"a": "main retry"}, policy={"objective": "PT10M"})
    scene.own({"a": "*"}).set("main-*", arrives=600, reads=3_000)
    return scene.set("retry-*", arrives=60, delay=5).behind("retry-*", 300).run(30)
