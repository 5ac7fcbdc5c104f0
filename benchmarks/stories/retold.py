"""Groups from public reports whose samples are stored in retold.json.

Belongs here: the right answers for the groups in retold.json. Belongs elsewhere: simulated groups
(`reported`).

A column of retold.json has, for each partition, a list with one value per sample, or a single value
for all samples.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.stories.answers import Right, Story

_START: Final = datetime(2026, 3, 2, tzinfo=UTC)
_GITHUB: Final = "https://github.com/"
_KAFKA: Final = "https://issues.apache.org/jira/browse/"
#: For each name: URLs of the report, what happened, and the right answer.
_STORIES: Final[Mapping[str, tuple[str, str, Right]]] = {
    "rewound-partition": (
        f"{_GITHUB}linkedin/Burrow/issues/714 {_GITHUB}kafbat/kafka-ui/issues/1206",
        (
            "An operator sets one partition of a consumer back to its beginning. It is read five "
            "times as fast as records arrive."
        ),
        Right(
            "It is committed in every sample: it is behind by its backlog.",
            "!stuck partition|unknown|healthy",
            never=("stuck", "not been committed"),
        ),
    ),
    "rewound-group": (
        f"{_KAFKA}KAFKA-4743 {_GITHUB}linkedin/Burrow/issues/15",
        "An operator sets a whole group back to its beginning.",
        Right(
            "Its member commits in every sample: the group is behind by its backlog.",
            "!stuck partition|unknown|healthy",
            never=("stuck", "committed nothing"),
        ),
    ),
    "foreign-commit-on-empty-partition": (
        f"{_KAFKA}KAFKA-12635 {_GITHUB}apache/kafka/pull/11748",
        (
            "A mirror has written a commit of another cluster for an empty partition. Its owner "
            "falls behind with three others, while another member has room."
        ),
        Right(
            "Nothing can be unread in an empty log; a plan helps the other partitions.",
            "unbalanced|slow member",
            plan=True,
            says=("t-4",),
        ),
    ),
    "expired-commit": (
        f"{_GITHUB}bsm/sarama-cluster/issues/116 {_KAFKA}KAFKA-3806",
        "The commit of an idle partition expires while its consumer lives.",
        Right(
            "The samples show that it stood at its end, and nothing has come since.",
            "healthy",
            never=("stuck", "records wait"),
        ),
    ),
    "never-committed-idle": (
        f"{_GITHUB}kedacore/keda/issues/5274 {_GITHUB}kedacore/keda/issues/2033",
        "A partition with old records has neither a commit nor an arrival.",
        Right(
            "4,000 records wait if its consumers begin at the start, none if at the end.",
            "!stuck partition",
            says=("4,000", "auto_offset_reset|beginning|earliest"),
            never=("stuck",),
        ),
    ),
    "backlog-skipped": (
        f"{_GITHUB}redpanda-data/console/issues/566 {_GITHUB}provectus/kafka-ui/issues/1619",
        (
            "A consumer falls behind for ten minutes; the operator skips the backlog. It has read "
            "all that arrives for 30 minutes since."
        ),
        Right("A later, higher bound of its speed replaces an older measurement.", "healthy"),
    ),
    "late-for-hours-commits-each-20-min": (
        (
            f"{_GITHUB}confluentinc/kafka-connect-storage-cloud/issues/940 "
            f"{_GITHUB}linkedin/Burrow/issues/303"
        ),
        (
            "A sink commits every 20 minutes. One task writes two thirds of what arrives and is "
            "eight hours behind."
        ),
        Right(
            "A day of samples holds 72 of its commits.",
            "slow member|overloaded",
            plan=None,
        ),
    ),
    "flush-size-1000": (
        f"{_GITHUB}confluentinc/kafka-connect-storage-cloud/issues/246",
        "A sink commits each 1,000 records; one partition gets five a minute.",
        Right(
            "580 records are less than one commit of its owner usually brings.",
            "!stuck partition",
            never=("stuck",),
        ),
    ),
    "unclean-election-one-partition": (
        f"{_GITHUB}apache/kafka/pull/9533",
        "After an unclean election a partition ends before the group's commit.",
        Right("Nobody can tell where its owner stands.", "unknown", names="a", says=("t-2",)),
    ),
    "hanging-transaction": (
        f"{_GITHUB}softwaremill/klag-exporter/issues/104",
        "A transaction is open on a partition; what lies behind its first record cannot be read.",
        Right(
            "The last stable offset does not move, and the commit is there.",
            "!stuck partition",
            says=("transaction", r"since|for \d+"),
            never=("stuck",),
        ),
    ),
}


def _retold() -> list[Story]:
    kept = json.loads(Path(__file__).with_suffix(".json").read_text())
    return [Story(case["name"], *_STORIES[case["name"]], partial(_question, case)) for case in kept]


def _question(case: Mapping[str, Any]) -> dict[str, Any]:
    samples = [
        {"at": (_START + timedelta(minutes=minute)).isoformat()}
        | {
            name: {
                topic: [part[place] if isinstance(part, list) else part for part in parts]
                for topic, parts in column.items()
            }
            for name, column in case["columns"].items()
        }
        for place, minute in enumerate(case["minutes"])
    ]
    return {"topics": case["topics"], "members": case["members"], "snapshots": samples}


RETOLD: Final[list[Story]] = _retold()
