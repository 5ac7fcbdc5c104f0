"""Speed of assignors, compared with Kafka's own assignors in the same run.

Belongs here: which assignors are compared on which problems, and timing them: medians after
warm-up. The time to build the input is not included, neither for Fairlead nor for Kafka. Belongs
elsewhere: comparing the quality of plans (`quality`).
"""

import json
import resource
import statistics
import struct
from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from assignors.assignment import Assignment
from assignors.metrics import balance_score
from assignors.problem import Int64, Problem
from assignors.registry import ASSIGNORS, assign
from assignors.verifier import violations
from benchmarks import workloads
from benchmarks.harness import apart, seconds
from tests.kafka_tools import run_java_source

PEERS = Path(__file__).with_name("Peers.java")
STICKY, UNIFORM = "StickyAssignor", "UniformAssignor"


@dataclass(frozen=True)
class Peer:
    """An assignor of Kafka to compare with, and how often to run it."""

    name: str
    warm_ups: int = 5
    runs: int = 5


@dataclass(frozen=True)
class Work:
    """A measurement: an assignor, a problem, Kafka's assignors to compare with, and the goal."""

    what: str
    assignor: str
    build: Callable[[], Problem]
    goal: str
    peers: tuple[Peer, ...] = ()


@dataclass(frozen=True)
class Timing:
    """An assignor's median duration over all runs, and the balance of its assignment."""

    name: str
    seconds: float
    count_min: int
    count_max: int
    balance_score: int


@dataclass(frozen=True)
class Row:
    """The timings for one `Work`; the first is that of Fairlead's assignor."""

    what: str
    goal: str
    timings: tuple[Timing, ...]


WORK = (
    Work(
        "range, 1M partitions",
        "range",
        workloads.equal_group,
        "10x faster than RangeAssignor",
        (Peer("RangeAssignor"),),
    ),
    Work(
        "round robin, 1M partitions",
        "roundrobin",
        workloads.equal_group,
        "20x faster than RoundRobinAssignor",
        (Peer("RoundRobinAssignor"),),
    ),
    Work(
        "sticky, 1M partitions, one member leaves",
        "sticky",
        lambda: workloads.one_member_gone(workloads.equal_group()),
        "20x faster than StickyAssignor, within 2x of UniformAssignor",
        (Peer(STICKY, 2, 3), Peer(UNIFORM)),
    ),
    Work(
        "sticky, half of the topics each, 40k partitions, fresh",
        "sticky",
        lambda: workloads.half_of_the_topics(40_000, 50, 500),
        "200x faster than StickyAssignor",
        # No warm-ups: a run of Kafka's sticky assignor takes half a minute, and warms up meanwhile.
        (Peer(STICKY, 0, 1), Peer(UNIFORM)),
    ),
    Work(
        "sticky, half of the topics each, 1M partitions, fresh",
        "sticky",
        lambda: workloads.half_of_the_topics(1_000_000, 500, 2_000),
        "under 3 s and 1 GiB; never less balanced than UniformAssignor, and faster",
        (Peer(UNIFORM),),
    ),
    Work(
        "sticky, Zipf sizes, 1 to 5 topics each, 1M partitions, fresh",
        "sticky",
        workloads.sparse_and_skewed,
        "under 15 s; never less balanced than UniformAssignor, and faster",
        (Peer(UNIFORM),),
    ),
    Work(
        "sticky, 1M partitions, three racks, fresh",
        "sticky",
        lambda: workloads.in_three_racks(workloads.equal_group()),
        "no goal was set",
        # No warm-ups: a run of Kafka's sticky assignor takes minutes.
        (Peer(STICKY, 0, 1), Peer(UNIFORM)),
    ),
    Work(
        "sticky, 1M partitions, three racks, one member leaves",
        "sticky",
        lambda: workloads.one_member_gone(workloads.in_three_racks(workloads.equal_group())),
        "no goal was set",
        (Peer(STICKY, 0, 1), Peer(UNIFORM)),
    ),
    Work(
        "fair, 1M partitions",
        "fair",
        workloads.equal_group,
        "10x faster than the published loop",
        (Peer("fair loop", 1, 3),),
    ),
    Work(
        "lag-aware, 1M partitions",
        "lag-aware",
        workloads.equal_group,
        "10x faster than the published loop",
        (Peer("lag-aware loop", 1, 3),),
    ),
    Work(
        "sticky lag-aware, 1M partitions, Zipf lags, from a sticky start",
        "sticky-lag-aware",
        lambda: from_sticky(workloads.equal_group()),
        "under 10 s",
    ),
    Work(
        "sticky lag-aware, 1M partitions, log-normal lags, from a sticky start",
        "sticky-lag-aware",
        lambda: from_sticky(log_normal(workloads.equal_group())),
        "under 10 s",
    ),
)


def from_sticky(problem: Problem) -> Problem:
    """Return the problem with the owners that `sticky` assigns."""
    return workloads.owned_by(problem, assign("sticky", problem).owner)


def log_normal(problem: Problem) -> Problem:
    """Return the problem with log-normal lags, so that no single partition limits the balance."""
    lags = np.random.default_rng(2).lognormal(6, 1, problem.partition_total)
    return replace(problem, weights=lags.astype(np.int64))


def measure_all(progress: Callable[[str], None], only: Container[str] | None = None) -> list[Row]:
    """Run every `Work`, or those named in `only`; report each to `progress`."""
    rows = []
    for work in (task for task in WORK if only is None or task.what in only):
        problem = work.build()
        timings = [time_ours(work.assignor, problem)]
        with TemporaryDirectory() as folder:
            file = Path(folder) / "problem"
            file.write_bytes(to_bytes(problem))
            timings += [time_peer(peer, file) for peer in work.peers]
        rows.append(Row(work.what, work.goal, tuple(timings)))
        progress(f"{work.what}: " + ", ".join(f"{t.name} {t.seconds:.3f} s" for t in timings))
    return rows


def growth() -> dict[str, float]:
    """Return each assignor's time per partition for 10^6 partitions, divided by that for 10^4.

    The problems have 100 topics and 200 members with equal subscriptions. The sticky assignors
    start from a sticky assignment from which one member has left.
    """
    ratios = {}
    for name in ASSIGNORS:
        each = []
        for partitions in (10_000, 1_000_000):
            problem = workloads.equal_group(partitions, 100, 200)
            if name.startswith("sticky"):
                problem = workloads.one_member_gone(problem)
            each.append(time_ours(name, problem).seconds / partitions)
        ratios[name] = each[1] / each[0]
    return ratios


def time_ours(name: str, problem: Problem) -> Timing:
    """Time one of Fairlead's assignors. No run can use cached results of another run."""
    taken: list[float] = []
    assignment = assign(name, replace(problem))
    while len(taken) < 3 or (sum(taken) < 1.0 and len(taken) < 20):
        taken.append(seconds(partial(assign, name, replace(problem))))
    wrong = violations(problem, assignment)
    if wrong:
        raise RuntimeError(f"{name}: {wrong}")
    return timing(f"fairlead {name}", taken, Assignment(problem, assignment.owner).counts)


def time_peer(peer: Peer, file: Path) -> Timing:
    """Time one of Kafka's assignors in Java."""
    output = run_java_source(
        PEERS, str(file), peer.name, str(peer.warm_ups), str(peer.runs), timeout_s=900
    )
    nanoseconds, counts = (json.loads(line) for line in output.splitlines()[-2:])
    return timing(peer.name, [each / 1e9 for each in nanoseconds], np.array(counts))


def timing(name: str, taken: list[float], counts: Int64) -> Timing:
    """Return a timing, given the runs' durations in seconds and the members' partition counts."""
    return Timing(
        name=name,
        seconds=statistics.median(taken),
        count_min=int(counts.min()),
        count_max=int(counts.max()),
        balance_score=balance_score(counts),
    )


def to_bytes(problem: Problem) -> bytes:
    """Return a problem in the format of Peers.java: big-endian arrays, each after its length."""
    arrays: list[Any] = [
        problem.partition_counts,
        problem.subscription_offsets,
        problem.subscription_topics,
        problem.owner,
    ]
    pieces = [
        piece
        for array in arrays
        for piece in (struct.pack(">i", array.size), array.astype(">i4").tobytes())
    ]
    racks = sorted({rack for rack in problem.racks if rack})
    bits = [sum(1 << racks.index(rack) for rack in held) for held in problem.rack_sets]
    members = [] if problem.rack_set_of is None else map(racks.index, filter(None, problem.racks))
    partitions: list[int] = []
    if problem.rack_set_of is not None:
        partitions = np.array(bits)[problem.rack_set_of].tolist()
    placed = [
        piece
        for array in (np.array([*members], ">i4"), np.array(partitions, ">i4"))
        for piece in (struct.pack(">i", array.size), array.tobytes())
    ]
    return b"".join([*pieces, problem.weights.astype(">i8").tobytes(), *placed])


def peak_memory() -> int:
    """Return the peak resident bytes of a process that assigns a million partitions with `sticky`.

    The members' subscriptions differ, so `sticky` must solve a flow problem.
    """
    return apart(_peak_memory)


def _peak_memory() -> int:
    """Run `sticky` on a million partitions; return this process's peak resident bytes."""
    assign("sticky", workloads.half_of_the_topics(1_000_000, 500, 2_000))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
