"""Groups of real consumers, recorded on a real broker as lines of `fairlead decide`, judged again.

Belongs here: recordings that are hard to judge, each with what is right. A mark names a fault that
is known, and goes with it. Three members of 150 records a second read twelve partitions; looks are
20 s apart.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from fairlead.domain.judgement.lines import answer_question

RECORDED = Path(__file__).with_name("recorded")


def answers(name: str) -> list[dict[str, Any]]:
    """Judge a recording look by look, each with the memory that the look before it left."""
    line = json.loads((RECORDED / f"{name}.json").read_text())
    given: list[dict[str, Any]] = []
    for number in range(1, len(line["snapshots"]) + 1):
        asked = {key: line[key] for key in ("policy", "topics", "members") if key in line}
        asked["snapshots"] = line["snapshots"][:number]
        changed = line.get("changed_at")
        if changed and changed <= asked["snapshots"][-1]["at"]:
            asked["changed_at"] = changed
        if given:
            asked["memory"] = given[-1]["memory"]
        given.append(answer_question(asked))
    return given


@pytest.mark.parametrize("name", ["false-hot-kafka-python", "false-overloaded-kafka-python"])
def test_an_owner_at_its_dear_chunk_does_not_make_a_group_hopeless(name: str) -> None:
    """58 % are used: one partition's records take ten times as long, and its owner is at them."""
    said = {answer["diagnosis"] for answer in answers(name)}
    assert not said & {"hot partition", "overloaded"}


@pytest.mark.xfail(strict=True, reason="at looks of 10 s, six stretches are over before 120 s are")
def test_a_crawling_partition_is_named_before_its_owner_is_relieved() -> None:
    """One partition crawls, in a consumer with a worker for each: nobody else is to be moved."""
    given = answers("crawling-taken-for-slow-member-at-10s-looks")
    assert [answer["outcome"] for answer in given if answer["outcome"] == "plan"] == []


@pytest.mark.xfail(strict=True, reason="commits of getmany are ahead by whole batches")
def test_getmany_tells_what_records_cost() -> None:
    """Partition 3 is ten times as dear, for forty looks and three plans."""
    assert answers("getmany-learns-no-cost")[-1]["costs"]["t"][3] is not None


def test_a_suspect_is_not_handed_on() -> None:
    """Partition 11 takes 1.9 members: whoever gets it makes the partitions that it has late."""
    given = answers("suspect-handed-on-kafka-python")
    plans = [answer["assignment"] for answer in given if answer["outcome"] == "plan"]
    owners = {
        owner[-1] for plan in plans for owner, read in plan.items() if 11 in read.get("t", ())
    }
    assert owners <= {"3"}


@pytest.mark.xfail(
    strict=True, reason="the cost is over-estimated where only a slow member reads it"
)
def test_a_slow_member_does_not_keep_a_dear_partition() -> None:
    """A member at half speed reads one dear partition and is late; a peer idles at 31 %."""
    assert answers("slow-member-keeps-a-dear-partition-aiokafka")[-1]["diagnosis"] == "healthy"
