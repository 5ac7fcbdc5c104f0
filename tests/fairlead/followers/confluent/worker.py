"""One PlanConsumer in a separate process, for tests that stop or kill it.

    python worker.py '{"journal": "...", "config": {...}, "topics": [...], ...}'

The process writes each event to the journal at once, as a line of JSON, so a kill loses nothing.
It can halt itself (SIGSTOP or SIGKILL) at a point of an agreement round, once a file arms it.
"""

import contextlib
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

from fairlead.errors import ConfigurationError
from fairlead.followers import FollowOptions
from fairlead.followers.confluent import PlanConsumer, agreement_round, member
from fairlead.followers.confluent.agreement_log import AgreementLog, Sent
from fairlead.followers.confluent.agreement_round import Verdict
from fairlead.followers.confluent.generation import Generation
from fairlead.followers.confluent.member import FollowingMember
from fairlead.wire.agreement import Announcement, AssignmentRecord, Record

# clocks: the order in which processes owned partitions

EXPECTED = {KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT}  # noqa: SLF001 - librdkafka's name


class Journal:
    """A file of events, one per line."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(self, event: str, **values: Any) -> None:
        """Write one event with its time, by the machine's clock, which all processes share."""
        line = json.dumps({"at": time.monotonic(), "event": event, **values})
        os.write(self._file, f"{line}\n".encode())


class Halt:
    """Stops or kills this process at a point of an agreement round, once."""

    def __init__(self, journal: Journal, spec: dict[str, str] | None) -> None:
        self._journal = journal
        self._spec = spec

    def reach(self, point: str) -> None:
        """Halt if this is the point and the file that arms it exists; remove that file."""
        spec = self._spec
        if not spec or spec["point"] != point:
            return
        with contextlib.suppress(FileNotFoundError):
            Path(spec["armed_by"]).unlink()  # only one of several processes halts
            self._journal.note("halt", point=point)
            os.kill(os.getpid(), signal.Signals[spec["signal"]])


def halt_when_owning(halt: Halt) -> None:
    """Let this process halt between the verdict and the assignment."""
    own = FollowingMember._own  # noqa: SLF001 - there is no public place between the two

    def halting(self: FollowingMember, generation: Generation, verdict: Verdict) -> None:
        halt.reach("assign")
        own(self, generation, verdict)

    FollowingMember._own = halting  # type: ignore[method-assign] # noqa: SLF001


def halt_when_appending(halt: Halt) -> None:
    """Let this process halt before and after writes to the log."""
    append = AgreementLog.append

    def halting(self: AgreementLog, record: Record) -> Sent:
        kinds = {Announcement: "announce", AssignmentRecord: "assignment record"}
        name = kinds.get(type(record), "mark")
        halt.reach(f"before {name}")
        sent = append(self, record)
        halt.reach(f"after {name}")
        return sent

    AgreementLog.append = halting  # type: ignore[method-assign]


def build(spec: dict[str, Any]) -> Consumer:
    if spec.get("plain"):
        return Consumer(spec["config"])
    agreement_round.TURN_S = spec.get("turn_s", agreement_round.TURN_S)  # type: ignore[misc] # no final here
    member.REPEAT_ASSIGNMENT_S = spec.get("repeat_assignment_s", member.REPEAT_ASSIGNMENT_S)  # type: ignore[misc]
    options = FollowOptions(
        plan_topic=spec["plan_topic"], rejoin_jitter_s=spec.get("rejoin_jitter_s", 0.2)
    )
    return PlanConsumer(
        spec["config"],
        options=options,
        coordination_topic=spec["coordination_topic"],
        group_secret=spec["group_secret"],
    )


@contextlib.contextmanager
def until_terminated() -> Iterator[list[bool]]:
    """Yield a list that gets an entry on SIGTERM."""
    ended: list[bool] = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    yield ended


def consume(consumer: Consumer, journal: Journal) -> None:
    """Poll once; store a message's offset once it is in the journal."""
    message = consumer.poll(0.1)
    if message is None:
        return
    if (error := message.error()) is not None:
        if error.code() not in EXPECTED:
            journal.note("error", text=error.str())
        return
    journal.note("message", topic=message.topic(), value=(message.value() or b"").decode())
    consumer.store_offsets(message)


def main(spec: dict[str, Any]) -> None:
    """Consume until SIGTERM."""
    logging.basicConfig(level=logging.INFO, format="%(created).3f %(message)s")
    journal = Journal(spec["journal"])
    halt = Halt(journal, spec.get("halt"))
    halt_when_appending(halt)
    halt_when_owning(halt)
    consumer = build(spec)

    def owns(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if spec.get("plain"):
            consumer.assign(partitions)
        share = [[p.topic, p.partition] for p in partitions]
        journal.note("own", partitions=share, member=consumer.memberid())

    def gives_up(_: Consumer, __: list[TopicPartition]) -> None:
        journal.note("release")

    version = None
    with until_terminated() as ended:
        try:
            journal.note("ready")
            consumer.subscribe(spec["topics"], on_assign=owns, on_revoke=gives_up)
            while not ended:
                consume(consumer, journal)
                if version != (version := getattr(consumer, "plan_version", None)):
                    journal.note("version", version=version)
        except ConfigurationError as error:
            journal.note("refused", text=str(error))
        consumer.unsubscribe()  # librdkafka can abort if only close() does this
        consumer.close()
        journal.note("closed")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
