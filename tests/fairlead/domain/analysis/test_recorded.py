"""Groups of real consumers, recorded on a real broker, analysed again.

Belongs here: recordings that are hard to analyse, each with what is right, and which of them are
analysed wrong. Three members of 150 records a second read twelve partitions; looks are
20 s apart.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead.domain.decide_json.lines import answer_question

RECORDED = Path(__file__).with_name("recorded")


def answers(name: str) -> list[dict[str, Any]]:
    """Analyse a recording look by look, each with the memory that the look before it left."""
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


def is_never_called_hopeless(given: list[dict[str, Any]]) -> bool:
    """Ask of a group of which 58 % are used: its owner is at records ten times as dear."""
    return not {answer["diagnosis"] for answer in given} & {"hot partition", "overloaded"}


def keeps_the_suspect(given: list[dict[str, Any]]) -> bool:
    """Partition 11 takes 1.9 members: whoever gets it makes what it has late."""
    plans = [answer["assignment"] for answer in given if answer["outcome"] == "plan"]
    owners = {
        owner[-1] for plan in plans for owner, read in plan.items() if 11 in read.get("t", ())
    }
    return owners <= {"3"}


def is_left_alone(given: list[dict[str, Any]]) -> bool:
    """One partition crawls, in a consumer with a worker for each: nobody is to be moved."""
    return all(answer["outcome"] == "no change" for answer in given)


def tells_the_cost(given: list[dict[str, Any]]) -> bool:
    """Partition 3 is ten times as dear, for forty looks and three plans."""
    return given[-1]["costs"]["t"][3] is not None


def is_cured(given: list[dict[str, Any]]) -> bool:
    """Say whether a slow member got rid of its dear partition: a peer idles at 31 %."""
    return bool(given[-1]["diagnosis"] == "healthy")


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("false-hot-kafka-python", is_never_called_hopeless),
        ("false-overloaded-kafka-python", is_never_called_hopeless),
    ],
)
def test_recorded_group_is_analysed_right(
    name: str, right: Callable[[list[dict[str, Any]]], bool]
) -> None:
    """At no look is anything said or done that the truth forbids."""
    assert right(answers(name))


@pytest.mark.parametrize(
    ("name", "right"),
    [
        # At looks of 10 s a slow member is measured before 120 s of standing still are over.
        ("crawling-taken-for-slow-member-at-10s-looks", is_left_alone),
        # Commits are ahead of the application by whole batches.
        ("suspect-handed-on-kafka-python", keeps_the_suspect),
        ("getmany-learns-no-cost", tells_the_cost),
        # The cost is over-estimated where only a slow member has read the partition.
        ("slow-member-keeps-a-dear-partition-aiokafka", is_cured),
    ],
)
def test_known_fault_is_still_there(
    name: str, right: Callable[[list[dict[str, Any]]], bool]
) -> None:
    """Whoever mends a fault moves its recording to the test above."""
    assert not right(answers(name))
