"""Reported work compared with applications' own logs: `python -m benchmarks.reported_work`.

Consumers report to the planner how long they processed records, and also log it themselves.

Belongs here: groups of three consumers on a real broker, and comparing the planner's analysis of
their reports with the consumers' own logs. Belongs elsewhere: the consumers (`working`).

Each topic has 18 partitions. In one, a record takes 10 times as long as usual, and in another, 3
times as long. One of the consumers needs 1.5 times as long for all records. The planner's gateway
takes the samples.
"""

import os
import random
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks import harness
from benchmarks.plans import document, publish
from benchmarks.services import arrivals, create_topics, folder, kafka, wait_until
from benchmarks.working import APPLICATIONS, COMMIT_MS, JAVA, LOOPS, Work, read_log, start
from fairlead.domain.analysis.capacities import Capacity
from fairlead.domain.analysis.decide import PlanDecision
from fairlead.domain.analysis.question import Question
from fairlead.domain.candidate_rows import ask
from fairlead.domain.policy import Policy
from fairlead.domain.samples.questions import Group, PlanningOptions, question_about
from fairlead.kafka.gateway import KafkaGateway
from fairlead.sandbox.jars import kafka_classpath
from fairlead.sandbox.plugin import compile_java, plugin_jar
from fairlead.settings import KafkaSettings

RESULTS: Final = Path(__file__).with_suffix(".json")
PARTS: Final = ("30 %", "85 %", "applications")
PARTITIONS: Final = 18
CONSUMERS: Final = 3
EXPENSIVE: Final = (10.0, 3.0)
SLOW: Final = 1.5
#: Number of partitions with usual costs that a consumer must own so that the analysis can
#: distinguish a slow consumer from expensive partitions.
USUAL: Final = 6
#: Seconds of reading before the first sample, seconds between samples, and number of samples.
WARM_S: Final = 10.0
SAMPLE_S: Final = 30.0
SAMPLES: Final = 5
#: For groups that get plans: seconds between samples, and number of samples.
LOOP_SAMPLE_S: Final = 10.0
LOOP_SAMPLES: Final = 42
LEAST_RECORDS: Final = 20
#: An estimated interval is wrong if the true value is above its upper end, or below its lower end,
#: by more than this factor.
FAR: Final = 1.25
SETTLES_S: Final = 600.0
#: `Load.utilisation` of groups without plans (QUIET), and of groups that get plans (BUSY). The
#: measured utilisation is higher, because sleeps take longer on a busy machine.
QUIET, BUSY = 0.3, 0.75
#: Number of ways to read records that are measured at the same time.
TOGETHER: Final = 3
CLOSED: Final = (
    "kafka-python, iterator",
    "confluent-kafka, poll",
    "aiokafka, getmany",
    JAVA,
)
OPTIONS: Final = PlanningOptions.of(Policy(), compare=False)

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Load:
    """The work of a group.

    Parameters
    ----------
    loop
        How its consumers read records: a key of `LOOPS` or `APPLICATIONS`, or `JAVA`.
    utilisation
        Work of all partitions, divided by the capacity of all consumers.
    cv
        Coefficient of variation of the times per record.
    usual_s
        Seconds that a record of a usual partition takes on a usual consumer.
    """

    loop: str
    utilisation: float = QUIET
    cv: float = 0.3
    usual_s: float = 15e-3


@dataclass(frozen=True)
class Taken:
    """A sample, and its time on the monotonic clock, as in the logs."""

    rows: pa.Table
    at: float


class Trial:
    """One group: its rates and costs, the logs of its consumers, and its samples.

    Parameters
    ----------
    servers
        The broker's address.
    place
        A folder for logs.
    load
        The work of the group.
    """

    def __init__(self, servers: str, place: Path, load: Load) -> None:
        self.load = load
        self.group = f"work-{uuid.uuid4().hex[:8]}"
        self.samples: list[Taken] = []
        #: The log of each consumer, by name.
        self.logs: dict[str, Float64] = {}
        names = [f"{self.group}-{number}" for number in range(CONSUMERS)]
        chance, each = random.Random(f"{load}"), PARTITIONS // CONSUMERS
        owners = chance.sample(range(CONSUMERS), len(EXPENSIVE))
        self.expensive = [owner * each + chance.randrange(each) for owner in owners]
        self.slow = chance.choice(names)
        costs = np.ones(PARTITIONS)
        costs[self.expensive] = EXPENSIVE
        self.seconds = {
            name: load.usual_s * costs * (SLOW if name == self.slow else 1.0) for name in names
        }
        rates = np.array([chance.uniform(0.8, 1.2) for _ in range(PARTITIONS)])
        capacity = CONSUMERS - 1 + 1 / SLOW
        self.rates = rates * load.utilisation * capacity / (load.usual_s * (rates * costs).sum())
        self.arrivals = {(self.group, number): its for number, its in enumerate(self.rates)}
        self.works = [
            Work(
                servers=servers,
                group=self.group,
                topic=self.group,
                name=name,
                loop=load.loop,
                seconds=self.seconds[name].tolist(),
                cv=load.cv,
                path=str(place / f"{name}.log"),
            )
            for name in names
        ]

    def utilised(self, first: float, last: float) -> float:
        """Return the utilisation of the group in a period, computed from the logs."""
        means = {
            name: true_means(log, self.seconds[name], first, last)
            for name, log in self.logs.items()
        }
        usual = min(means.values(), key=np.sum)
        capacity = sum(float(usual.min() / its.min()) for its in means.values())
        return float((self.rates * usual).sum() / capacity)


class Groups:
    """Runs groups on one broker.

    Parameters
    ----------
    servers
        The broker's address.
    classpath
        Classpath of Java consumers.
    """

    def __init__(self, servers: str, classpath: str) -> None:
        self.servers, self._classpath = servers, classpath
        self._settings = KafkaSettings(bootstrap_servers=servers)
        create_topics(servers, {self._settings.plan_topic: 1})

    @contextmanager
    def at_work(self, loads: Sequence[Load]) -> Iterator[tuple[list[Trial], KafkaGateway]]:
        """Run groups during the context; at its end, stop their consumers and read their logs."""
        with folder() as place, KafkaGateway(self._settings) as gateway, ExitStack() as stack:
            trials = [Trial(self.servers, place, load) for load in loads]
            create_topics(self.servers, {trial.group: PARTITIONS for trial in trials})
            processes = [start(work, self._classpath) for trial in trials for work in trial.works]
            try:
                wait_until(
                    lambda: self._settled(gateway, trials),
                    "all consumers have partitions",
                    within_s=SETTLES_S,
                    every_s=1.0,
                )
                for trial in trials:
                    stack.enter_context(arrivals(self.servers, trial.arrivals))
                time.sleep(WARM_S)
                yield trials, gateway
                for process in processes:
                    process.communicate(timeout=SETTLES_S)
                for trial in trials:
                    trial.logs = {work.name: read_log(work.path) for work in trial.works}
            finally:
                for process in processes:
                    process.kill()
                    process.wait()

    def _settled(self, gateway: KafkaGateway, trials: Sequence[Trial]) -> bool:
        groups = [trial.group for trial in trials]
        rows = gateway.snapshot(groups, patience_s=0.0).samples.select(["owner"]).to_pylist()
        return all(set(row["owner"]) == set(range(CONSUMERS)) for row in rows)


def take(gateway: KafkaGateway, trials: Sequence[Trial]) -> None:
    """Take a sample of each group, and append it to `Trial.samples`."""
    samples = gateway.snapshot([trial.group for trial in trials], patience_s=0.0).samples
    at, groups = time.monotonic(), samples["group"].to_pylist()
    for trial in trials:
        trial.samples.append(Taken(samples.slice(groups.index(trial.group), 1), at))


def analysed(
    samples: Sequence[Taken],
    capacities: Mapping[str, Capacity] | None = None,
    changes: Sequence[float] = (),
) -> tuple[Question, PlanDecision]:
    """Analyse samples as the planner does under the default policy."""
    rows = pa.concat_tables([its.rows for its in samples])
    question = question_about(Group(rows, capacities or {}, changes), OPTIONS)
    return question, ask(question, OPTIONS)


def true_means(log: Float64, seconds: Float64, first: float, last: float) -> Float64:
    """Return the true mean time per record of each partition for one consumer in a period.

    Handlers sleep for a randomly drawn time, but on a busy machine, sleeps take longer. So the true
    mean is that of the random distribution, plus the mean excess of the period's sleeps.
    """
    mine = log[(log[:, 1] >= first) & (log[:, 1] < last)]
    beyond: float = (mine[:, 2] - mine[:, 3]).mean() if len(mine) else np.nan
    return seconds + beyond


def busy_share(log: Float64, first: float, last: float) -> float:
    """Return the share of a period in which a consumer processed at least one record."""
    log = log[np.argsort(log[:, 1])]
    began = np.clip(log[:, 1], first, last)
    ended = np.maximum.accumulate(np.clip(log[:, 1] + log[:, 2], first, last))
    starts, ends = np.append(began, last), np.insert(ended, 0, first)
    return float(1.0 - np.maximum(starts - ends, 0.0).sum() / (last - first))


def intervals(trial: Trial, samples: Sequence[Taken]) -> dict[str, int]:
    """Compare the estimated 90 % intervals of times per record with the logs.

    The analysis estimates the interval of each partition from two samples.

    Returns
    -------
    Counts of partitions: `enough`: those with at least `LEAST_RECORDS` records; `shown`: those with
    an interval; `true`: those whose interval contains the true mean; `wrong`: those whose interval
    is wrong as defined at `FAR`.
    """
    question, decision = analysed(samples)
    work, logs = decision.work, trial.logs
    found = dict.fromkeys(("enough", "shown", "true", "wrong"), 0)
    if work is None:
        return found
    names, low_high = question.series.members, work.interval
    first, last = (its.at - COMMIT_MS / 2e3 for its in samples)
    truth = {name: true_means(log, trial.seconds[name], first, last) for name, log in logs.items()}
    for pair in range(work.partition.size):
        its = truth[names[work.member[pair]]][work.partition[pair]]
        low, high = (ends[pair] for ends in low_high)
        known = bool(work.known[pair])
        found["enough"] += int(work.records[pair] >= LEAST_RECORDS)
        found["shown"] += int(known)
        found["true"] += int(known and low <= its <= high)
        found["wrong"] += int(known and not low / FAR <= its <= high * FAR)
    return found


def named(trial: Trial, question: Question, decision: PlanDecision) -> bool:
    """Return whether the diagnosis names both expensive partitions and the slow consumer.

    If the slow consumer owns fewer than `USUAL` usual partitions, the analysis cannot know whether
    the consumer is slow or its partitions are expensive. Then the evidence must give both
    explanations.
    """
    text, owner = decision.diagnosis.evidence, question.problem.owner
    if trial.slow not in question.problem.members:
        return False
    mine = np.flatnonzero(owner == question.problem.members.index(trial.slow))
    usual = np.setdiff1d(mine, trial.expensive)
    partitions = [f"{trial.group}-{number}" for number in trial.expensive]
    expensive = all(f"{its} takes" in text or f"{its} are expensive" in text for its in partitions)
    slow = f"{trial.slow} takes" in text
    return expensive and slow and ("either it is slow" in text or usual.size >= USUAL)


def evaluated(trial: Trial) -> dict[str, Any]:
    """Return a row that compares the analysis of a group with its logs."""
    samples = trial.samples
    chosen = samples if trial.load.cv < 1 else [samples[0], samples[-1]]
    pairs = [intervals(trial, chosen[place : place + 2]) for place in range(len(chosen) - 1)]
    (question, decision), (_, whole) = analysed([samples[0], samples[-1]]), analysed(samples)
    first, last = samples[0].at, samples[-1].at
    busy = {name: busy_share(log, first, last) for name, log in trial.logs.items()}
    shares = {} if decision.work is None else decision.work.row(question.problem)["consumers"]
    known = {name: its for name, its in shares.items() if its is not None}
    decisions = [decision, whole]
    return {
        **asdict(trial.load),
        **{key: sum(pair[key] for pair in pairs) for key in pairs[0]},
        "named": named(trial, question, decision),
        "busy": {name[-1]: [busy[name], shares.get(name)] for name in sorted(busy)},
        "busy_off": max((abs(its - busy[name]) for name, its in known.items()), default=None),
        "plan": any(its.outcome == "plan" for its in decisions),
        "ignored": sum(its.work.ignored for its in decisions if its.work is not None),
        "evidence": decision.diagnosis.evidence.replace(f"{trial.group}-", ""),
    }


def measure(groups: Groups, loads: Sequence[Load]) -> list[dict[str, Any]]:
    """Run groups at the same time, without plans; return a row for each."""
    with groups.at_work(loads) as (trials, gateway):
        began = time.monotonic()
        for number in range(SAMPLES):
            time.sleep(max(0.0, began + number * SAMPLE_S - time.monotonic()))
            take(gateway, trials)
    return [evaluated(trial) for trial in trials]


@dataclass
class Controlled:
    """A group that gets plans, and what happened to it.

    Parameters
    ----------
    trial
        The group.
    time_lag_s
        Seconds that each partition is behind at each sample.
    changes
        When plans were published, in seconds since the epoch.
    capacities
        The planner's estimates of the consumers' capacities.
    reasons
        The reasons for the plans.
    """

    trial: Trial
    time_lag_s: list[Float64] = field(default_factory=list)
    changes: list[float] = field(default_factory=list)
    capacities: Mapping[str, Capacity] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)

    def control(self, servers: str) -> None:
        """Analyse the samples. If the analysis chooses a plan, publish this plan."""
        trial = self.trial
        if trial.samples[-1].rows["error"][0].is_valid:  # the group is rebalancing
            self.time_lag_s += self.time_lag_s[-1:]
            return
        question, decision = analysed(trial.samples, self.capacities, self.changes)
        self.capacities = decision.capacities
        series = question.series
        self.time_lag_s.append(series.time_lag(series.lag[-1].astype(np.float64), trial.rates))
        if decision.chosen is None or decision.chosen.assignment is None:
            return
        plan = document(
            trial.group,
            {trial.group: PARTITIONS},
            decision.chosen.assignment.by_member(),
            version=len(self.changes) + 1,
        )
        publish(servers, KafkaSettings().plan_topic, plan)
        self.changes.append(time.time())
        self.reasons.append(decision.reason)

    def result(self) -> dict[str, Any]:
        """Return the group's row of figures."""
        over = np.array(self.time_lag_s) > OPTIONS.rules.objective_s
        stretch, longest = np.zeros(PARTITIONS), 0.0
        for row in over:
            stretch = np.where(row, stretch + LOOP_SAMPLE_S, 0.0)
            longest = max(longest, float(stretch.max()))
        first, last = self.trial.samples[0].at, self.trial.samples[-1].at
        busy = [busy_share(log, first, last) for log in self.trial.logs.values()]
        return {
            **asdict(self.trial.load),
            "utilised": self.trial.utilised(first, last),
            "plans": len(self.changes),
            "longest_over_s": longest,
            "over_at_end": bool(over[-1].any()),
            "worst_s": float(np.max(self.time_lag_s)),
            "busy": busy,
            "reasons": self.reasons,
        }


def control(groups: Groups, loads: Sequence[Load], samples: int) -> list[dict[str, Any]]:
    """Run groups at the same time, with the planner's plans; return a row for each."""
    with groups.at_work(loads) as (trials, gateway):
        controlled = [Controlled(trial) for trial in trials]
        began = time.monotonic()
        for number in range(samples):
            time.sleep(max(0.0, began + number * LOOP_SAMPLE_S - time.monotonic()))
            take(gateway, trials)
            for its in controlled:
                its.control(groups.servers)
    return [its.result() for its in controlled]


def quick(loop: str) -> Load:
    """Return a load with short times per record, for an application of `APPLICATIONS`."""
    if loop.startswith("10 us"):
        return Load(loop, utilisation=0.001, usual_s=10e-6)
    return Load(loop, usual_s=5e-3 if loop == "flush every 500" else 15e-3)


def show(bench: harness.Bench, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Print one table for each part of the measurement."""

    def points(share: float | None) -> str:
        return "unknown" if share is None else f"{100 * share:.1f}"

    def compared(row: Mapping[str, Any]) -> tuple[object, ...]:
        share = f"{row['true'] / row['shown']:.0%}" if row["shown"] else ""
        return (
            *(row["loop"], row["cv"], row["enough"], row["shown"], share, row["wrong"]),
            *(row["named"], points(row["busy_off"]), row["plan"]),
        )

    headings = ("loop", "cv", "intervals", "shown", "true", "far off", "named", "busy off", "plan")
    for part in (PARTS[0], PARTS[2]):
        if found := rows.get(part):
            bench.show(part, headings, map(compared, found))
    if found := rows.get(PARTS[1]):
        bench.show(
            PARTS[1],
            ("loop", "utilised", "plans", "longest over the objective, s", "worst, s", "busy"),
            (
                (
                    *(row["loop"], f"{row['utilised']:.0%}", row["plans"], row["longest_over_s"]),
                    round(row["worst_s"]),
                    " ".join(f"{its:.0%}" for its in row["busy"]),
                )
                for row in found
            ),
        )


def main() -> None:
    """Measure, print, and write reported_work.json."""
    options = harness.parser(__doc__)
    options.add_argument("--parts", nargs="*", choices=PARTS, default=PARTS)
    options.add_argument("--only", default="", help="loops and applications with this in the name")
    with harness.measuring(options, RESULTS) as bench, folder() as place, kafka() as broker:
        jars = [plugin_jar(), *kafka_classpath()]
        compile_java([Path(__file__).with_name("Working.java")], jars, place, release=17)
        classpath = os.pathsep.join(map(str, [place, *jars]))
        groups, only = Groups(broker.bootstrap_servers, classpath), bench.options.only
        rows: dict[str, list[dict[str, Any]]] = {}

        def run(part: str, loads: Sequence[Load]) -> None:
            if part not in bench.options.parts or not loads:
                return
            bench.log(f"{part}: {', '.join(load.loop for load in loads)}")
            found = (
                control(groups, loads, LOOP_SAMPLES) if part == PARTS[1] else measure(groups, loads)
            )
            rows.setdefault(part, []).extend(harness.rounded(found))
            bench.write(rows)
            show(bench, {part: found})

        loops = [its for its in (*LOOPS, JAVA) if only in its]
        for first in range(0, len(loops), TOGETHER):
            pair = loops[first : first + TOGETHER]
            run(PARTS[0], [Load(its, cv=cv) for its in pair for cv in (0.3, 2.0)])
        run(PARTS[1], [Load(its, utilisation=BUSY, usual_s=60e-3) for its in CLOSED if only in its])
        kinds = [its for its in APPLICATIONS if only in its]
        for first in range(0, len(kinds), 2 * TOGETHER):
            run(PARTS[2], [quick(its) for its in kinds[first : first + 2 * TOGETHER]])


if __name__ == "__main__":
    main()
