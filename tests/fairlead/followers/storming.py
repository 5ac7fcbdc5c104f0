"""Weathering a storm.

Belongs here: how often which event comes, what is demanded after each and at the end. Does not: the
group and the events (`storm`), nor which consumers it is made of (the tests).
"""

import logging
import statistics
from collections.abc import Mapping

from tests.fairlead.followers.helpers import eventually
from tests.fairlead.followers.storm import Storm

log = logging.getLogger(__name__)

MEMBERS = 8
#: How often each event comes; members that vanish take a session timeout each.
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
#: And where there are several brokers.
OF_BROKERS = {"broker_dies": 2, "broker_freezes": 2}


def weather(storm: Storm, events: int, weights: Mapping[str, int]) -> None:
    """Settle after each event; at the end every message is read, and none twice without need."""
    for _ in range(MEMBERS):
        storm.join()
    storm.plan()
    storm.settle()
    storm.settled_s.clear()
    for _ in range(events):
        what = storm.rng.choices(list(weights), list(weights.values()))[0]
        happened = getattr(storm, what)() or storm.join() or storm.plan()
        storm.history.append(happened)
        storm.settle()
        storm.history[-1] += f": settled in {storm.settled_s[-1]:.1f} s"
        log.info("%s", storm.history[-1])
    storm.stop_writing()
    eventually(lambda: len(storm.readers()) == storm.sent, "every message is read", within_s=180)
    readers = storm.readers()
    twice = {number: by for number, by in readers.items() if by.total() > 1}
    harmed = storm.harmed | storm.said_harmed()
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
    unexplained = {number: by for number, by in twice.items() if number not in excused}
    assert storm.outages or not unexplained, (unexplained, storm.history)
