"""Risks of a plan, in plain words.

Belongs here: risks for the person who decides. Belongs elsewhere: the policy's rules
(`fairlead.domain.approval`). No I/O.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from fairlead.common.words import length, listed, number, percent, plural, times
from fairlead.surfaces.review.facts import Facts

#: Maps a partition's status to its meaning for a person who decides whether to move the partition.
_STATUSES: Final = {
    "DATA_LOSS": "records were deleted before the group read them; no plan restores them",
    "STOP": "there is lag, and no consumer of the group committed for far longer than "
    "usual: find out why before moving anything",
    "STALL": "there is lag, but no commit for far longer than usual, while other partitions had "
    "commits: a record that cannot be processed would move to the new owner",
    "REWIND": "the committed offset has gone back: records are read again, perhaps on purpose",
}
_MANY_MOVED: Final = 0.2
_CLUMPED: Final = 2.0
_OLD: Final = timedelta(hours=1)
_SOON: Final = timedelta(minutes=30)


@dataclass(frozen=True)
class Risk:
    """One risk.

    Parameters
    ----------
    serious
        Whether a person should examine the risk before approving.
    topic
        A short title.
    text
        A sentence.
    """

    serious: bool
    topic: str
    text: str


def risks(facts: Facts) -> list[Risk]:
    """Return the risks, serious ones first."""
    result = [
        *_more_than_ever(facts),
        *_statuses(facts),
        *_effect(facts),
        *_topics(facts),
        *_moves(facts),
        *_consumers(facts),
    ]
    if facts.stored.state in {"proposed", "approved"}:
        result += _time(facts)
    if facts.stored.state == "proposed" and facts.stored.four_eyes:
        result.append(
            Risk(
                serious=False,
                topic="Four eyes",
                text="Two people on the pages must approve, or a database user who neither "
                "proposed the plan nor is a planner."
                if facts.stored.four_eyes == "proxy"
                else "The approver must be a database user who neither proposed the plan nor is a "
                "planner.",
            )
        )
    return sorted(result, key=lambda risk: not risk.serious)


def _more_than_ever(facts: Facts) -> Iterator[Risk]:
    """Warn if a consumer would get records at a higher rate than any consumer ever processed."""
    observed = [load.seen for _, load in facts.loads if load.seen is not None]
    observed += [load.capacity for _, load in facts.loads if load.measured]
    if not observed:
        return
    most = max(observed)
    beyond = [
        (name, load.after) for name, load in facts.loads if load.after > max(most, load.before)
    ]
    if beyond:
        names = listed([name for name, _ in beyond])
        text = (
            f"{names} would get more than any consumer of the group has ever processed: up to "
            f"{times(beyond[0][1] / most)} as much."
        )
        yield Risk(serious=True, topic="Untested load", text=text)


def _statuses(facts: Facts) -> Iterator[Risk]:
    if not facts.statuses:
        text = "The lag of single partitions at the snapshot is not stored."
        yield Risk(serious=False, topic="Status unknown", text=text)
    for row in facts.statuses:
        if meaning := _STATUSES.get(row["status"]):
            count = plural(row["partitions"], "partition")
            verb = "is" if row["partitions"] == 1 else "are"
            names = listed(row["heaviest"], row["partitions"])
            text = f"{count} {verb} in {row['status']} ({names}): {meaning}."
            yield Risk(serious=row["status"] != "REWIND", topic=row["status"], text=text)


def _effect(facts: Facts) -> Iterator[Risk]:
    heaviest, predicted = facts.plan["lag_max_before"], facts.plan["lag_max_predicted"]
    if heaviest is not None and predicted is not None and predicted > heaviest:
        change = f"{number(heaviest)} to {number(predicted)} records"
        text = f"The most loaded consumer gets more: {change}."
        yield Risk(serious=True, topic="More load", text=text)


def _topics(facts: Facts) -> Iterator[Risk]:
    """Warn if one consumer would get a larger share of a topic than any consumer has now."""
    before, after = (facts.plan[f"topic_spread_{when}"] for when in ("before", "predicted"))
    if before is not None and after > max(before, 1.0):
        text = (
            f"One consumer would have {times(after)} its even share of a topic; before, the "
            f"maximum was {times(before)}. If this topic gets more records, this consumer gets "
            "this share of them, even if all consumers have the same number of partitions."
        )
        yield Risk(serious=after >= _CLUMPED, topic="A topic on few consumers", text=text)


def _moves(facts: Facts) -> Iterator[Risk]:
    moved, partitions = facts.plan["moved"], facts.partitions
    if moved and partitions:
        share = moved / partitions
        change = "changes its consumer" if moved == 1 else "change their consumer"
        text = (
            f"{number(moved)} of {plural(partitions, 'partition')} ({percent(share)}) {change}: "
            "records in process are processed again, and state or caches per partition start empty."
        )
        yield Risk(serious=share >= _MANY_MOVED, topic="Moves", text=text)


def _consumers(facts: Facts) -> Iterator[Risk]:
    bare = [
        consumer.consumer
        for consumer in facts.consumers
        if consumer.partitions_before and not consumer.partitions_after
    ]
    if bare:
        text = f"{plural(len(bare), 'consumer')} would have no partitions: {listed(bare)}."
        yield Risk(serious=True, topic="Idle consumers", text=text)


def _time(facts: Facts) -> Iterator[Risk]:
    age = facts.now - facts.stored.snapshot_at
    text = f"Lag and members were read {length(age)} ago; later changes are not in these figures."
    yield Risk(serious=age > _OLD, topic="Age of the snapshot", text=text)
    expires_at = facts.stored.expires_at
    if expires_at is None:
        text = "The plan does not expire."
        yield Risk(serious=False, topic="Expiry", text=text)
    elif facts.expired:
        text = f"The plan expired {length(facts.now - expires_at)} ago and cannot be published."
        yield Risk(serious=True, topic="Expired", text=text)
    else:
        remaining = expires_at - facts.now
        text = f"The plan expires in {length(remaining)}."
        yield Risk(serious=remaining < _SOON, topic="Expiry", text=text)
