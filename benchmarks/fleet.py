"""Time to plan a fleet of groups from recorded snapshots: `python -m benchmarks.fleet`.

Belongs here: timing a planning run through Dagster for two sizes of the fleet; timing the Spark
step of the run on one core, on two cores, and with one giant among small groups; lower bounds for
the steps. Each measurement has its own process. Belongs elsewhere: making the snapshots
(`recorded`), fetching from a broker (`fleet_fetch`).
"""

import json
import os
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import dagster as dg
import pandas as pd
import psutil
from pyspark.sql import DataFrame, SparkSession
from sqlalchemy import func, select

from assets.partitions import COHORT as COHORTS
from benchmarks import harness, recorded
from benchmarks.harness import Bench, seconds
from benchmarks.recorded import COHORT, Size
from benchmarks.services import folder, postgres
from benchmarks.store import copying
from fairlead.archive import SampleArchive
from fairlead.domain.analysis.capacities import Capacity
from fairlead.domain.group_memories import GroupMemories
from fairlead.domain.records import Findings
from fairlead.domain.samples import GroupSnapshot
from fairlead.settings import load_settings
from fairlead.spark.candidates import write_candidates
from fairlead.spark.lag import write_lag
from fairlead.spark.session import build_session
from fairlead.spark.warehouse import Warehouse
from fairlead.store.analysis_memory import record_findings
from fairlead.store.engine import create_store_engine, transaction
from fairlead.store.shared_statements import register_groups
from orchestration.definitions import build_defs

RESULTS: Final = Path(__file__).with_name("fleet.json")
EACH, MEMBERS = 100, 10
SMALL, TIMES = 1_000, 10  # groups of the small fleet; the large fleet has ten times as many
CORES: Final = 2
GIANT: Final = 1_000_000  # partitions of the giant group, a thousand per member
GIB: Final = 2**30
GOALS: Final = ("12 at most", "1.6 at least", "1.5 at most", "0.1 at most")
#: Run config with which Dagster logs events only to its database, not to the benchmark's output.
QUIET: Final = {"loggers": {"console": {"config": {"log_level": "WARNING"}}}}
#: A function that measures, given a warehouse, the sizes of the fleet's groups, and a database URL.
Measure = Callable[[Warehouse, list[Size], str], dict[str, Any]]
CONFIG: Final = """
[[policies]]
groups = "*"
cohort = "fleet"
assignors = ["sticky-lag-aware", "lag-aware", "sticky", "fair", "roundrobin", "range"]
approval = {automatic = true}
"""
DAGSTER: Final = """
telemetry: {enabled: false}
storage:
  postgres:
    postgres_url: "%s"
"""


def main() -> None:
    """Measure everything, print, and write fleet.json."""
    options = harness.parser(__doc__)
    options.add_argument("--groups", type=int, default=SMALL, help="of the small fleet")
    options.add_argument("--times", type=int, default=TIMES, help="as many in the large one")
    options.add_argument("--giant", type=int, default=GIANT, help="partitions of the giant")
    with harness.measuring(options, RESULTS) as bench:
        giant = Size(1, bench.options.giant, bench.options.giant // 1_000)
        small, large = bench.options.groups, bench.options.groups * bench.options.times
        found: dict[str, Any] = {}
        for name, measure, sizes, cores in (
            ("small fleet", planning_run, [fleet(small)], CORES),
            ("large fleet", planning_run, [fleet(large)], CORES),
            ("floors", floors, [fleet(large)], CORES),
            ("one core", candidates_alone, [fleet(large)], 1),
            ("two cores", candidates_alone, [fleet(large)], CORES),
            ("small ones alone", candidates_alone, [fleet(small)], CORES),
            ("small ones beside a giant", candidates_alone, [fleet(small), giant], CORES),
        ):
            bench.log(name)
            found[name] = harness.apart(surrounded, measure, sizes, cores)
        each = {"partitions": EACH, "members": MEMBERS, "assignors": 6}
        results = harness.rounded({"each group": each, **found, "ratios": ratios(found)})
        bench.write(results)
        show(bench, results, small, large)


def fleet(groups: int) -> Size:
    """Return the size of a fleet with this number of groups."""
    return Size(groups, EACH, MEMBERS)


def ratios(found: Mapping[str, Any]) -> dict[str, float]:
    """Return the ratios of measurements, by name. There is a goal for each of them."""
    small, large = found["small fleet"], found["large fleet"]
    alone, beside = found["small ones alone"], found["small ones beside a giant"]
    return {
        "growth, small fleet to large": large["run_s"] / small["run_s"],
        "two cores over one, Spark step": found["one core"]["small_s"]
        / found["two cores"]["small_s"],
        "small ones beside a giant over alone": beside["small_s"] / alone["small_s"],
        "Dagster's share of the run": large["dagster_s"] / large["run_s"],
    }


def surrounded(measure: Measure, sizes: list[Size], cores: int) -> dict[str, Any]:
    """Start a Postgres and Spark, then run a measurement with them."""
    # Restrict the CPUs, because Spark on one core would use two: one for the JVM, and one for its
    # Python workers.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    with surroundings(cores) as (warehouse, url):
        build_session(load_settings().spark).range(1).count()
        return measure(warehouse, sizes, url)


@contextmanager
def surroundings(cores: int) -> Iterator[tuple[Warehouse, str]]:
    """Start a Postgres, and set environment variables so that Fairlead and Dagster use it.

    Yields the warehouse and the URL of Fairlead's database.
    """
    with folder() as place, postgres() as server:
        url = server.url("fairlead")
        (place / "fairlead.toml").write_text(CONFIG)
        (place / "dagster.yaml").write_text(DAGSTER % server.url("dagster", driver="psycopg2"))
        spark = {
            "spark.ui.enabled": "true",
            "spark.ui.port": "0",
            "spark.sql.shuffle.partitions": "8",
        }
        os.environ |= {
            "FAIRLEAD_CONFIG": str(place / "fairlead.toml"),
            "FAIRLEAD_WAREHOUSE": str(place / "warehouse"),
            "FAIRLEAD_POSTGRES__URL": url,
            "FAIRLEAD_SPARK__MASTER": f"local[{cores}]",
            "FAIRLEAD_SPARK__PROPERTIES": json.dumps(spark),
            "DAGSTER_HOME": str(place),
        }
        yield Warehouse(str(place / "warehouse")), url


def planning_run(warehouse: Warehouse, sizes: list[Size], url: str) -> dict[str, Any]:
    """Time a Dagster run of the assets from `partition_lag` to `assignment_plan`."""
    remember(url, write(warehouse, sizes))
    job = dg.define_asset_job(
        "recorded",
        selection=dg.AssetSelection.assets("partition_lag", "candidate_plans", "assignment_plan"),
    )
    definition = build_defs(jobs=[job]).resolve_job_def("recorded")
    with dg.DagsterInstance.get() as instance, watched_memory() as peak:
        instance.add_dynamic_partitions(COHORTS, [COHORT])
        began = time.perf_counter()
        result = definition.execute_in_process(
            run_config=QUIET, instance=instance, partition_key=COHORT
        )
        run_s = time.perf_counter() - began
        steps = work_of_steps(instance, result.run_id)
    planned = result.asset_materializations_for_node("assignment_plan")[0].metadata
    return {
        "run_s": run_s,
        "steps_s": steps,
        "dagster_s": run_s - sum(steps.values()),
        "plans": planned["plans"].value,
        "failed": planned["failed"].value,
        "peak_bytes": peak(),
    }


def work_of_steps(instance: dg.DagsterInstance, run_id: str) -> dict[str, float]:
    """Return the seconds from the start of each step's function to its first result."""
    began: dict[str, float] = {}
    ended: dict[str, float] = {}
    for record in instance.all_logs(run_id):
        event = record.dagster_event
        if event is None or event.step_key is None:
            continue
        if event.event_type == dg.DagsterEventType.STEP_START:
            began[event.step_key] = record.timestamp
        elif event.event_type == dg.DagsterEventType.STEP_OUTPUT:
            ended.setdefault(event.step_key, record.timestamp)
    return {step: ended[step] - start for step, start in began.items()}


def candidates_alone(warehouse: Warehouse, sizes: list[Size], _: str) -> dict[str, Any]:
    """Time the Spark step that computes candidates.

    `small_s`: seconds until all small groups are done; `all_s`: until the giant is, too.
    """
    snapshot, names = with_lag(warehouse, sizes)
    spark, policy = build_session(load_settings().spark), load_settings().policies[0]
    began = time.time()
    write_candidates(spark, warehouse, snapshot, dict.fromkeys(names, policy), GroupMemories())
    all_s = time.time() - began
    ends = sorted(task_ends(spark))
    small = ends[:-1] if len(sizes) > 1 else ends  # the giant's task ends last
    return {"small_s": small[-1] - began, "all_s": all_s}


def write(warehouse: Warehouse, sizes: list[Size]) -> GroupSnapshot:
    """Write a snapshot, and the samples of the day before."""
    snapshot = recorded.snapshot(sizes)
    archive = SampleArchive(warehouse.path)
    for sample_id, sample in recorded.past(snapshot):
        archive.append(sample, sample_id)
    archive.tidy(snapshot.snapshot_at, timedelta(days=2))
    names = snapshot.samples["group"].to_pylist()
    warehouse.write_snapshot(snapshot, dict.fromkeys(names, COHORT))
    return snapshot


def remember(url: str, snapshot: GroupSnapshot) -> None:
    """Store the capacities of half of the members, as if the fleet had been planned before."""
    at = snapshot.snapshot_at - timedelta(minutes=15)
    speed = Capacity(200.0, measured=True, at=at.timestamp())
    found = {
        row["group"]: (
            at,
            Findings(
                diagnosis="unknown",
                names=(),
                evidence="",
                forecast_time_lag_s=0.0,
                utilisation=0.0,
                capacities=dict.fromkeys(row["members"][::2], speed),
            ),
        )
        for row in snapshot.samples.select(["group", "members"]).to_pylist()
    }
    store = create_store_engine(url)
    with transaction(store) as connection:
        register_groups(connection, found)
        record_findings(connection, found)
    store.dispose()


def with_lag(warehouse: Warehouse, sizes: list[Size]) -> tuple[str, list[str]]:
    """Write a snapshot and its lag; return the snapshot's id and groups."""
    snapshot = write(warehouse, sizes)
    spark = build_session(load_settings().spark)
    write_lag(spark, warehouse, snapshot.snapshot_id)
    return snapshot.snapshot_id, snapshot.samples["group"].to_pylist()


def task_ends(spark: SparkSession) -> Iterator[float]:
    """Yield the end times of the newest stage's tasks, in seconds since the epoch."""
    context = spark.sparkContext
    stages = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages"
    newest = max(spark_answer(stages), key=lambda stage: stage["stageId"])
    for task in spark_answer(f"{stages}/{newest['stageId']}/0/taskList?length=10000"):
        launched = datetime.fromisoformat(task["launchTime"].replace("GMT", "Z"))
        yield launched.timestamp() + task["duration"] / 1000


def spark_answer(url: str) -> Any:
    """Return the parsed response of Spark's REST API."""
    with urllib.request.urlopen(url) as answer:  # noqa: S310 - this process's own session
        return json.load(answer)


def floors(warehouse: Warehouse, sizes: list[Size], url: str) -> dict[str, Any]:
    """Time the unavoidable operations of the steps on the same rows: no step can be faster."""
    snapshot, _ = with_lag(warehouse, sizes)
    spark = build_session(load_settings().spark)
    lag = spark.read.parquet(f"{warehouse.path}/lag/{snapshot}")

    def nothing(rows: pd.DataFrame) -> pd.DataFrame:
        return rows.head(0)

    empty = lag.groupBy("group").applyInPandas(nothing, lag.schema)
    rows = warehouse.load("lag", snapshot).rename_columns({"group": "group_id"})
    day = rows["snapshot_at"][0].as_py().date()
    store = create_store_engine(url)
    with transaction(store) as connection:
        connection.execute(select(func.fairlead_raw.ensure_day(day)))
    store.dispose()
    file = Path(load_settings().warehouse_path) / "lag.csv"
    copy = copying(rows.drop_columns("snapshot_id"), "fairlead_raw.partition_lag", url, file)
    return {
        "reading the Parquet of lag": seconds(lambda: discard(lag)),
        "an empty applyInPandas": seconds(lambda: discard(empty)),
        "psql copying lag": seconds(copy),
    }


def discard(rows: DataFrame) -> None:
    """Compute rows and discard them."""
    rows.write.format("noop").mode("overwrite").save()


@contextmanager
def watched_memory() -> Iterator[Callable[[], int]]:
    """Watch the memory of this process, its children and Postgres.

    Yields a function that returns the peak in bytes.
    """
    samples, done = [0], threading.Event()
    postgres = [
        process for process in psutil.process_iter(["name"]) if process.info["name"] == "postgres"
    ]

    def watch() -> None:
        me = psutil.Process()
        while not done.wait(0.5):
            samples.append(sum(map(own_bytes, [me, *me.children(recursive=True), *postgres])))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield lambda: max(samples)
    finally:
        done.set()
        watcher.join()


def own_bytes(process: psutil.Process) -> int:
    """Return the private memory of a process, in bytes; 0 if it has ended."""
    try:
        return int(process.memory_full_info().uss)
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return 0


def show(bench: Bench, results: Mapping[str, Any], small: int, large: int) -> None:
    """Print the measurements."""
    fleets = [results["small fleet"], results["large fleet"]]
    steps = {
        name: [measured["steps_s"][name] for measured in fleets] for name in fleets[0]["steps_s"]
    }
    steps["Dagster's own"] = [measured["dagster_s"] for measured in fleets]
    steps["the whole run (goal: 120)"] = [measured["run_s"] for measured in fleets]
    steps["peak memory, GiB (goal: 8)"] = [measured["peak_bytes"] / GIB for measured in fleets]
    bench.show(
        "Planning recorded fleets through Dagster, seconds",
        ("step", f"{small:,} groups", f"{large:,} groups"),
        ((name, *(f"{value:.1f}" for value in both)) for name, both in steps.items()),
    )
    bench.show(
        f"What cannot be beaten, {large:,} groups",
        ("what", "seconds"),
        ((name, f"{taken:.1f}") for name, taken in results["floors"].items()),
    )
    bench.show(
        "Ratios",
        ("what", "ratio", "goal"),
        (
            (name, f"{ratio:.2f}", goal)
            for (name, ratio), goal in zip(results["ratios"].items(), GOALS, strict=True)
        ),
    )


if __name__ == "__main__":
    main()
