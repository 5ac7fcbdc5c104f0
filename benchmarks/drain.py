"""The benefit of plans under a steady, skewed load: `python -m benchmarks.drain`.

Belongs here: producers and consumers at fixed rates on a real broker, groups that read the same
records at the same time under four different assignors, and each group's lag. Belongs elsewhere:
the time that plans add to a rebalance (`rebalance`).

Plans are made as in the pipeline, but without Spark: the gateway reads lag and owners, arrival
rates are differences between two samples, and `sticky-lag-aware` computes the assignment. The plan
is sent to the plan topic, and plan followers rejoin after reading it.
"""

import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor

from assignors.problem import Member as PlannedMember
from assignors.problem import Problem
from assignors.registry import assign
from benchmarks import harness
from benchmarks.consumers import KafkaPythonMember
from benchmarks.harness import DOCS
from benchmarks.plans import document, publish
from benchmarks.services import arrivals, create_topics, kafka, wait_until
from fairlead.domain.samples import ownership
from fairlead.followers.client_assignors.kafka_python import LagAwareAssignor
from fairlead.kafka.gateway import KafkaGateway
from fairlead.settings import KafkaSettings

RESULTS: Final = Path(__file__).with_name("drain.json")
PLOT: Final = DOCS / "followers.svg"

TOPICS, PARTITIONS, CONSUMERS = 3, 8, 6
#: Number of records per second that one consumer can process.
CONSUMER_RATE: Final = 60.0
#: Arrivals, divided by the capacity of all consumers.
LOAD: Final = 0.85
#: Exponent of the Zipf distribution of arrivals over partitions.
SKEW: Final = 0.6
SECONDS: Final = 120.0
#: Seconds from the start when one consumer of each group restarts. Without these restarts, groups
#: without plans would have no rebalance, and their assignors would never run.
RESTARTS: Final = (30.0, 75.0)
SAMPLE_S: Final = 3.0
PLAN_S: Final = 15.0
HORIZON_S: Final = 30.0
GROUPS: Final[dict[str, dict[str, Any]]] = {
    "range": {
        "follow": False,
        "partition_assignment_strategy": (RangePartitionAssignor,),
    },
    "cooperative-sticky": {
        "follow": False,
        "partition_assignment_strategy": (CooperativeStickyAssignor,),
    },
    "lag-aware, direct": {"follow": False, "direct": True},
    "plans": {"follow": True, "plan_topic": "drain-plans", "rejoin_jitter_s": 0.5},
}
#: Label and line style of each group in the plot.
LINES: Final = {
    "range": ("range", "-"),
    "cooperative-sticky": ("cooperative-sticky", "--"),
    "lag-aware, direct": ("lag-aware, without plans", "-."),
    "plans": ("Fairlead", "-"),
}
#: A row of the table of samples.
Sample = Mapping[str, Any]


@dataclass
class Course:
    """Measurements of one group over time.

    Parameters
    ----------
    name
        A key of `GROUPS`: how the group's partitions are assigned.
    at_s, heaviest, total, consumed
        One value per sample: seconds since the start, lag of the most loaded consumer, lag of all
        consumers, and number of records consumed so far.
    plans
        Number of published plans.
    """

    name: str
    at_s: list[float] = field(default_factory=list)
    heaviest: list[int] = field(default_factory=list)
    total: list[int] = field(default_factory=list)
    consumed: list[int] = field(default_factory=list)
    plans: int = 0


class Group:
    """The consumers of one group."""

    def __init__(self, servers: str, name: str, topics: list[str]) -> None:
        self.course = Course(name)
        self.group_id = name.replace(", ", "-")
        self._servers = servers
        self._topics = topics
        self._members: dict[int, KafkaPythonMember] = {}

    def start(self, number: int) -> None:
        """Start a consumer."""
        config: dict[str, Any] = {
            "bootstrap_servers": self._servers,
            "group_id": self.group_id,
            "client_id": f"c{number}",
            "auto_offset_reset": "earliest",
            "auto_commit_interval_ms": 500,
            "heartbeat_interval_ms": 500,
            "max_poll_records": 15,
            **GROUPS[self.course.name],
        }
        if config.pop("direct", False):
            connection = {"bootstrap_servers": self._servers}
            assignor = LagAwareAssignor(self.group_id, connection)
            config["partition_assignment_strategy"] = (assignor,)
        self._members[number] = KafkaPythonMember(
            self._topics, work=lambda records: time.sleep(records / CONSUMER_RATE), **config
        )
        self._members[number].__enter__()

    def restart(self, number: int) -> None:
        """Restart a consumer, as a rolling deployment does."""
        self._members.pop(number).__exit__(None, None, None)
        self.start(number)

    def covered(self) -> bool:
        """Return whether every partition has a consumer."""
        return sum(len(member.owned) for member in self._members.values()) == TOPICS * PARTITIONS

    def stop(self) -> None:
        """Stop all consumers."""
        while self._members:
            self._members.popitem()[1].__exit__(None, None, None)

    def note(self, sample: Sample, since: float) -> None:
        """Add the values of a sample to `course`; `since` is when the benchmark started."""
        committed, owner = np.maximum(sample["committed"], 0), np.array(sample["owner"])
        lag = np.maximum(sample["end"], 0) - committed
        by_member = np.bincount(owner[owner >= 0], weights=lag[owner >= 0], minlength=1)
        self.course.at_s.append(round(time.monotonic() - since, 1))
        self.course.heaviest.append(int(by_member.max()))
        self.course.total.append(int(lag.sum()))
        self.course.consumed.append(int(committed.sum()))


class Planner:
    """Plans repeatedly for one group."""

    def __init__(self, servers: str, group: Group, plan_topic: str) -> None:
        self.group = group
        self._plan_topic = plan_topic
        self._servers = servers
        self._before: tuple[float, npt.NDArray[np.int64]] | None = None

    def plan(self, sample: Sample) -> None:
        """Compute a plan from the last two samples. If the plan changes owners, publish it."""
        name, end = self.group.group_id, np.maximum(sample["end"], 0)
        at, before = time.monotonic(), self._before
        self._before = at, end
        if before is None or before[1].size != end.size:
            return
        rates = (end - before[1]) / (at - before[0])
        lags = np.maximum(end - np.maximum(sample["committed"], 0), 0)
        topics, owned = sample["topics"], ownership(sample)
        members = {
            member: PlannedMember(read, owned=owned[member])
            for member, read in zip(sample["members"], sample["subscriptions"], strict=True)
        }
        problem = Problem.of(
            dict.fromkeys(topics, PARTITIONS),
            members,
            {t: lags[n * PARTITIONS : (n + 1) * PARTITIONS] for n, t in enumerate(topics)},
            arrival_rates={
                t: rates[n * PARTITIONS : (n + 1) * PARTITIONS] for n, t in enumerate(topics)
            },
        )
        assignment = assign("sticky-lag-aware", problem, horizon=HORIZON_S)
        if len(members) < CONSUMERS or np.array_equal(assignment.owner, problem.owner):
            return
        self.group.course.plans += 1
        plan = document(
            name,
            dict.fromkeys(topics, PARTITIONS),
            assignment.by_member(),
            version=self.group.course.plans,
        )
        publish(self._servers, self._plan_topic, plan)


def rates(topics: list[str]) -> dict[tuple[str, int], float]:
    """Return the rate of each partition, in records per second; the rates follow Zipf's law."""
    weights = 1.0 / np.arange(1, TOPICS * PARTITIONS + 1) ** SKEW
    np.random.default_rng(5).shuffle(weights)
    each = weights / weights.sum() * LOAD * CONSUMERS * CONSUMER_RATE
    return dict(zip(product(topics, range(PARTITIONS)), each.tolist(), strict=True))


def measure(servers: str, seconds: float) -> list[Course]:
    """Run all groups at the same time on the same records; return their measurements."""
    topics = [f"drain-{number}" for number in range(TOPICS)]
    plan_topic = GROUPS["plans"]["plan_topic"]
    create_topics(servers, {**dict.fromkeys(topics, PARTITIONS), plan_topic: 1})
    groups = [Group(servers, name, topics) for name in GROUPS]
    planner = Planner(servers, groups[-1], plan_topic)
    with ExitStack() as stack:
        for group in groups:
            stack.callback(group.stop)
            for number in range(CONSUMERS):
                group.start(number)
        for group in groups:
            wait_until(group.covered, f"{group.course.name} settles")
        stack.enter_context(arrivals(servers, rates(topics)))
        gateway = stack.enter_context(KafkaGateway(KafkaSettings(bootstrap_servers=servers)))
        began, restarts, plan_at = time.monotonic(), list(RESTARTS), PLAN_S
        while (elapsed := time.monotonic() - began) < seconds:
            if restarts and elapsed >= restarts[0]:
                restarts.pop(0)
                for group in groups:
                    group.restart(0)
            samples = gateway.snapshot([group.group_id for group in groups]).samples.to_pylist()
            by_group = {sample["group"]: sample for sample in samples}
            for group in groups:
                group.note(by_group[group.group_id], began)
            if elapsed >= plan_at:
                planner.plan(by_group[planner.group.group_id])
                plan_at += PLAN_S
            time.sleep(max(0.0, began + elapsed + SAMPLE_S - time.monotonic()))
    return [group.course for group in groups]


def draw(courses: list[Course]) -> None:
    """Draw the lag of the most loaded consumer over time."""
    from matplotlib import rc_context  # noqa: PLC0415 - the same
    from matplotlib.figure import Figure  # noqa: PLC0415 - slow to import, and only needed here

    from benchmarks.plot_style import GREY, STYLE  # noqa: PLC0415 - the same

    with rc_context(STYLE):
        figure = Figure(figsize=(9, 4), layout="constrained")
        axis = figure.subplots()
        for course in courses:
            seconds = [heaviest / CONSUMER_RATE for heaviest in course.heaviest]
            label, style = LINES[course.name]
            colour, width = ("#3d85e0", 2.5) if label == "Fairlead" else (GREY, 1.5)
            axis.plot(course.at_s, seconds, style, color=colour, linewidth=width)
            axis.annotate(
                label,
                (course.at_s[-1], seconds[-1]),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                color=colour,
            )
        for at_s in RESTARTS:
            axis.axvline(at_s, color=GREY, linewidth=0.8, linestyle=":")
        axis.set_xlabel("seconds since start (dotted line: a consumer of each group restarts)")
        axis.set_ylabel("lag of the busiest consumer, in seconds of work")
        figure.savefig(PLOT, metadata={"Date": None})


def main() -> None:
    """Measure, print the table, write the figures and draw the plot."""
    options = harness.parser(__doc__)
    options.add_argument("--seconds", type=float, default=SECONDS)
    with harness.measuring(options, RESULTS) as bench, kafka() as broker:
        courses = measure(broker.bootstrap_servers, bench.options.seconds)
        bench.write({"rows": [asdict(course) for course in courses]})
        if bench.keeps:
            draw(courses)
        bench.show(
            "The second half of a steady, skewed load",
            ("assigned by", "consumed / arrived", "heaviest lag, s", "total lag, s"),
            map(summary, courses),
        )


def summary(course: Course) -> tuple[str, ...]:
    """Return a table row with the group's figures in the second half of the run."""
    half = len(course.at_s) // 2
    consumed = course.consumed[-1] - course.consumed[half]
    arrived = consumed + course.total[-1] - course.total[half]
    heaviest = float(np.mean(course.heaviest[half:])) / CONSUMER_RATE
    total = float(np.mean(course.total[half:])) / (CONSUMERS * CONSUMER_RATE)
    return course.name, f"{consumed / arrived:.2f}", f"{heaviest:.1f}", f"{total:.1f}"


if __name__ == "__main__":
    main()
