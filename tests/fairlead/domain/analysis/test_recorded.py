"""Recordings of real consumers on a real broker, analysed by the current code.

Three members, each of which can read 150 records a second, read twelve partitions; samples are 20 s
apart.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from fairlead.domain.decide_json.lines import answer_question

RECORDED = Path(__file__).with_name("recorded")


def answers(name: str) -> list[dict[str, Any]]:
    """Analyse a recording after each sample; pass on the memory that the last answer returned."""
    line = json.loads((RECORDED / f"{name}.json").read_text())
    results: list[dict[str, Any]] = []
    for number in range(1, len(line["snapshots"]) + 1):
        question = {key: line[key] for key in ("policy", "topics", "members") if key in line}
        question["snapshots"] = line["snapshots"][:number]
        changed = line.get("changed_at")
        if changed and changed <= question["snapshots"][-1]["at"]:
            question["changed_at"] = changed
        if results:
            question["memory"] = results[-1]["memory"]
        results.append(answer_question(question))
    return results


@pytest.mark.parametrize("client", ["false-hot-kafka-python", "false-overloaded-kafka-python"])
def test_group_with_enough_capacity_is_not_overloaded(client: str) -> None:
    """A group at 58 % of its capacity, with one expensive partition, is never called overloaded."""
    named = {answer["diagnosis"] for answer in answers(client)}
    assert not named & {"hot partition", "overloaded"}
