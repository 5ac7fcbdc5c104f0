"""Time from a slow consumer to an adopted plan: `python -m benchmarks.reaction_chain`.

Belongs here: a group on a real broker whose consumers need time for each record; Dagster's daemon
with a sample every 15 s and a warm Spark; timing each stage; printing, and writing
reaction_chain.json. Belongs elsewhere: the duration of the planning run (`reaction`).
"""

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from benchmarks import harness
from benchmarks.consumers import KafkaPythonMember
from benchmarks.harness import Bench
from benchmarks.installation import PATIENCE_S, WORKSPACE, Installation, installed
from benchmarks.services import arrivals, create_topics, wait_until
from fairlead.wire.document import PlanDocument

RESULTS: Final = Path(__file__).with_name("reaction_chain.json")
TOPIC: Final = "records"
PARTITIONS, MEMBERS = 12, 3
ARRIVE_S, DO_S = 120.0, 100.0  # records/s: total arrivals, and what one consumer can process
SLOWED: Final = 3.0
#: Seconds before the consumer slows down, in which samples show a healthy group.
HEALTHY_S: Final = 120.0
PATIENTLY: Final = {"within_s": PATIENCE_S, "every_s": 0.1}
SETTINGS: Final = """
sampling.every = "PT15S"
sampling.share = 0.5
discovery.include = ["chain-*"]

[[policies]]
approval = {automatic = true}
"""


class Pace:
    """A handler whose speed can change: `per_s` records per second."""

    def __init__(self) -> None:
        self.per_s = DO_S

    def __call__(self, records: int) -> None:
        """Sleep for as long as this number of records takes."""
        time.sleep(records / self.per_s)


def main() -> None:
    """Measure some rounds, print, and write reaction_chain.json."""
    with (
        harness.measuring(harness.parser(__doc__, rounds=1), RESULTS) as bench,
        installed(SETTINGS) as installation,
        ExitStack() as stack,
    ):
        installation.run("dagster", "sensor", "start", "planning_sensor", "-w", WORKSPACE)
        create_topics(installation.servers, {TOPIC: PARTITIONS})
        stack.enter_context(installation.warm_spark())
        even = {(TOPIC, number): ARRIVE_S / PARTITIONS for number in range(PARTITIONS)}
        stack.enter_context(arrivals(installation.servers, even))
        stack.enter_context(installation.running("dagster-daemon", "run", "-w", WORKSPACE))
        rounds = [
            measured(installation, f"chain-{number}", bench)
            for number in range(bench.options.rounds)
        ]
        names = [name for name in rounds[0] if name != "diagnosis"]
        medians = {name: harness.median((figures[name] for figures in rounds), 1) for name in names}
        bench.write({"rounds": rounds, "medians": medians})
        bench.show("A consumer slows down: medians", ("from .. to", "seconds"), medians.items())


def measured(installation: Installation, group: str, bench: Bench) -> dict[str, Any]:
    """Slow down one of a group's consumers; return the seconds until each stage."""
    paces = [Pace() for _ in range(MEMBERS)]
    with ExitStack() as stack:
        members = {
            f"{group}-{number}": stack.enter_context(
                KafkaPythonMember(
                    [TOPIC],
                    follow=True,
                    work=pace,
                    bootstrap_servers=installation.servers,
                    group_id=group,
                    client_id=f"{group}-{number}",
                    auto_offset_reset="latest",
                    auto_commit_interval_ms=1_000,
                    max_poll_records=10,
                )
            )
            for number, pace in enumerate(paces)
        }

        def current_diagnosis() -> str | None:
            statement = "SELECT diagnosis FROM fairlead.diagnosis WHERE group_id = %s"
            rows = installation.rows(statement, group)
            return rows[0][0] if rows else None

        def adopted() -> bool:
            rows = installation.rows(
                "SELECT document FROM fairlead.plan WHERE group_id = %s AND state = 'published'",
                group,
            )
            if not rows:
                return False
            document = PlanDocument.from_bytes(bytes(rows[0][0]), group=group)
            return all(
                members[name].owned
                == {
                    (topic, int(number))
                    for topic, partition in share.partitions.items()
                    for number in partition
                }
                for name, share in document.members.items()
            )

        time.sleep(HEALTHY_S)  # meanwhile, the daemon takes samples
        wait_until(lambda: current_diagnosis() == "healthy", f"{group} is healthy", **PATIENTLY)
        bench.log(f"{group} is healthy")
        paces[1].per_s = DO_S / SLOWED
        began = time.monotonic()
        well = {None, "healthy", "unknown"}
        wait_until(lambda: current_diagnosis() not in well, f"{group} is diagnosed", **PATIENTLY)
        diagnosed, diagnosis = time.monotonic() - began, current_diagnosis()
        bench.log(f"{group}: {diagnosis} after {diagnosed:.1f} s")
        wait_until(adopted, f"{group} follows its plan", **PATIENTLY)
        followed = time.monotonic() - began
        (stored, published) = installation.rows(
            "SELECT extract(epoch FROM now() - proposed_at)::float8,"
            " extract(epoch FROM now() - published_at)::float8"
            " FROM fairlead.plan_history WHERE group_id = %s AND state = 'published'",
            group,
        )[0]
        now = time.monotonic() - began
        return {
            "diagnosis": diagnosis,
            "cause to diagnosis": round(diagnosed, 1),
            "cause to stored plan": round(now - stored, 1),
            "cause to published plan": round(now - published, 1),
            "cause to adopted plan": round(followed, 1),
        }


if __name__ == "__main__":
    main()
