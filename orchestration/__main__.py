"""Run a job from a shell, without the UI: `python -m orchestration planning GROUP [GROUP ...]`.

What the schedule does, for chosen cohorts, now, in this process. Runs are recorded where
`DAGSTER_HOME` says, and so appear in the UI. Partitions that Dagster does not know yet are added
first. Warnings go to standard error, what came of each group to standard output.
"""

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

import dagster as dg
import typer
from sqlalchemy import Engine

from assets.partitions import COHORT
from assets.resources import StoreResource
from fairlead.cohorts import cohort_of, discover
from fairlead.errors import FairleadError, GroupError
from fairlead.kafka.gateway import KafkaGateway
from fairlead.nearest import nearest
from fairlead.settings import load_settings
from fairlead.store.plans import PlanStore
from fairlead.store.reading import read_decisions
from orchestration.definitions import defs
from orchestration.runs import known_cohorts, run_requests


def run(job: str, cohorts: list[str], instance: dg.DagsterInstance, *, log_level: str) -> bool:
    """Run a job over cohorts, in as few runs as possible; returns whether all succeeded."""
    instance.add_dynamic_partitions(COHORT, cohorts)
    definition = defs.resolve_job_def(job)
    return all(
        definition.execute_in_process(
            instance=instance,
            partition_key=request.partition_key,
            run_config={"loggers": {"console": {"config": {"log_level": log_level}}}},
            tags=request.tags,
            raise_on_error=False,
        ).success
        for request in run_requests(cohorts, known_cohorts(instance))
    )


def require_known(cohorts: Iterable[str], instance: dg.DagsterInstance) -> None:
    """Refuse what is neither a partition nor on the cluster, before anything is stored of it.

    Raises
    ------
    GroupError
        There is no such group and no such cohort; the message says which one may be meant.
    """
    known = set(known_cohorts(instance))
    if known.issuperset(cohorts):
        return
    settings = load_settings()
    with KafkaGateway(settings.kafka) as gateway:
        groups = gateway.list_groups()
    known |= {*groups, *discover(groups, settings.discovery, settings.policies)}
    for cohort in cohorts:
        if cohort not in known:
            close = nearest(cohort, known)
            hint = f"; did you mean {close}?" if close else ""
            raise GroupError(f"the cluster has no group {cohort}, nor is a cohort called so{hint}")


def came_to(engine: Engine, cohorts: Iterable[str], since: datetime | None) -> Iterator[str]:
    """Say in a line a group what was decided on the groups of some cohorts after a moment."""
    wanted, policies = set(cohorts), load_settings().policies
    for row in read_decisions(engine, since):
        if cohort_of(row["group"], policies) in wanted:
            has_plan = row["version"] is not None
            plan = f", version {row['version']}, {row['state']}" if has_plan else ""
            yield f"{row['group']}: {row['outcome']}{plan}: {row['reason']}"


def arguments_parser() -> argparse.ArgumentParser:
    """Return what reads the command line."""
    parser = argparse.ArgumentParser(prog="python -m orchestration", description=__doc__)
    parser.add_argument("job", choices=["planning", "publication", "adoption"])
    parser.add_argument("cohorts", nargs="+", metavar="COHORT", help="a group, or a named cohort")
    parser.add_argument("--verbose", action="store_true", help="show all that Dagster logs")
    return parser


def main(words: Sequence[str] | None = None) -> int:
    """Run, and say what came of it; the exit code is 0 when every run succeeded."""
    parser = arguments_parser()
    arguments = parser.parse_args(words)
    job, cohorts = arguments.job, arguments.cohorts
    log_level = "DEBUG" if arguments.verbose else "WARNING"
    if not os.environ.get("DAGSTER_HOME"):
        parser.error("DAGSTER_HOME is not set: it says where Dagster keeps its runs")
    try:
        with dg.DagsterInstance.get() as instance, StoreResource().connect() as engine:
            require_known(cohorts, instance)
            # By the database's clock, which decisions are dated by.
            since = max(PlanStore(engine).last_decisions().values(), default=None)
            succeeded = run(job, cohorts, instance, log_level=log_level)
            for line in came_to(engine, cohorts, since):
                typer.echo(line)
    except FairleadError as error:
        typer.echo(f"fairlead: {error}", err=True)
        return 1
    if not succeeded:
        typer.echo(f"fairlead: the job {job} failed; what is logged above says where", err=True)
    return 0 if succeeded else 1


if __name__ == "__main__":
    sys.exit(main())
