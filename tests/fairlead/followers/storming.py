"""Run a storm: cause random events in a group, and check it after each event and at the end.

Belongs here: the frequency of events, and the checks after each event and at the end. Belongs
elsewhere: the group and the events (`storm`), and the kinds of consumers (the tests).
"""

import logging
import statistics
from collections import defaultdict
from collections.abc import Mapping

from confluent_kafka.admin import AdminClient, NewTopic

from tests.cluster import QUIET
from tests.fairlead.followers.storm import Storm
from tests.topics import create_topics
from tests.waiting import eventually

log = logging.getLogger(__name__)

#: Relative frequency of each event. Killing a member is slow: its session must time out.
WEIGHTS = {
    "join": 5,
    "leave": 3,
    "kill": 2,
    "pause": 2,
    "plan": 5,
    "tombstone": 1,
    "garbage": 2,
    "grow": 2,
}
#: Relative frequency of further events, if there are several brokers.
OF_BROKERS = {"broker_dies": 2, "broker_freezes": 2, "both_die": 2}


def make_topics(bootstrap_servers: str, plan_topic: str, topic: str) -> None:
    """Create the topics of a storm, with the brokers' default number of replicas."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, **QUIET})
    new = [NewTopic(plan_topic, 3, config={"cleanup.policy": "compact"}), NewTopic(topic, 12)]
    create_topics(admin, *new)


def weather(storm: Storm, events: int, weights: Mapping[str, int]) -> None:
    """Cause random events; check the group after each event, and all messages at the end.

    Every message must be read. A message may be read twice only if a reader died, was dropped or
    could not commit, or if a broker failed. The offsets that a member reads between two assignments
    must ascend by one. Healthy members must never share a partition.
    """
    for _ in range(storm.at_first):
        storm.join()
    storm.plan()
    storm.settle()
    storm.settled_s.clear()
    for number in range(1, events + 1):
        drawn = storm.rng.choices(list(weights), list(weights.values()))[0]
        for what in (drawn, "join", "plan"):
            storm.event = number, what
            if happened := getattr(storm, what)():
                break
        storm.unowned_s.setdefault(storm.event, 0.0)
        storm.history.append(happened)
        storm.settle()
        storm.history[-1] += f": settled in {storm.settled_s[-1]:.1f} s"
        log.info("%s", storm.history[-1])
    storm.stop_writing()
    eventually(lambda: len(storm.readers()) == storm.sent, "every message is read")
    readers = storm.readers()
    twice = {number: by for number, by in readers.items() if by.total() > 1}
    harmed = storm.harmed | storm.harmed_by_logs()
    excused = {number for number, by in twice.items() if by.keys() & harmed}
    log.warning(
        "%s, %s: %d events, %d messages, none lost, %d read twice, all but %d around members "
        "that died, were dropped or could not commit (%d of them); brokers away %d times; "
        "settled in %.1f s as a rule, %.1f s at most",
        ["static " * kind.static + f"{kind.client} {dict(kind.configs)}" for kind in storm.kinds],
        storm.history[0],
        len(storm.history) - 1,
        storm.sent,
        len(twice),
        len(twice) - len(excused),
        len(harmed),
        storm.outages,
        statistics.median(storm.settled_s),
        max(storm.settled_s),
    )
    log.warning("longest without an owner, s: %s", unowned(storm))
    unexplained = {number: by for number, by in twice.items() if number not in excused}
    assert storm.outages or not unexplained, (unexplained, storm.history, storm.folder)
    overlaps = [overlap for overlap in storm.overlaps if not overlap.folders & harmed]
    assert not overlaps, (overlaps, storm.history)
    possessions = list(storm.possessions())
    log.warning("%d possessions", len(possessions))
    torn = [offsets for offsets in possessions if not ascend(offsets)]
    assert not torn, (torn, storm.folder)


def ascend(offsets: list[int]) -> bool:
    """Return whether each offset is the previous one plus one.

    >>> ascend([]), ascend([4, 5, 6]), ascend([0, 1072])
    (True, True, False)
    """
    return not offsets or offsets == list(range(offsets[0], offsets[0] + len(offsets)))


def unowned(storm: Storm) -> dict[str, str]:
    """Return, for each kind of event, a text about the time that partitions had no owner.

    The text has the number of these events, and the median and maximum in seconds.
    """
    by_cause: defaultdict[str, list[float]] = defaultdict(list)
    for (_, cause), seconds in storm.unowned_s.items():
        by_cause[cause].append(seconds)
    return {
        cause: f"{len(found)}: {statistics.median(found):.1f}, {max(found):.1f}"
        for cause, found in by_cause.items()
    }
