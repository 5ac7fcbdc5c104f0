"""Plan from a shell, without the UI: `python -m orchestration planning GROUP [GROUP ...]`.

Runs what the schedule runs, for chosen cohorts, now, in this process. Dagster records the runs in
`DAGSTER_HOME`, so they appear in the UI. Partitions that Dagster does not know yet are added first.
The result of each group goes to standard output; warnings and errors of runs go to standard error.
A run that fails does not end the others.
"""

import argparse
import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

import dagster as dg
from sqlalchemy import Engine

from assets.partitions import COHORT
from assets.resources import StoreResource
from fairlead.common.nearest import hint
from fairlead.domain.cohorts import cohort_of, discover
from fairlead.errors import FairleadError, GroupError
from fairlead.kafka.gateway import KafkaGateway
from fairlead.settings import load_settings
from fairlead.store.history_queries import read_decisions
from fairlead.store.plans import PlanStore
from fairlead.surfaces.cli.output import say, say_error
from orchestration.definitions import defs
from orchestration.jobs import planning
from orchestration.runs import known_cohorts, run_requests

#: Dagster's connections: time-out of a query, maximum age of a connection that is used again, and
#: their number beside the first. A lost connection fails a query, so the age is only seconds.
_STATEMENT_MS, _RECYCLE_S, _MORE_CONNECTIONS = 60_000, 5, 20


def run(cohorts: list[str], instance: dg.DagsterInstance, *, log_level: str) -> Iterator[str]:
    """Plan cohorts, in as few runs as possible; a run that fails does not end the others.

    Yields
    ------
    The error of each run that failed, as soon as it failed.
    """
    instance.add_dynamic_partitions(COHORT, cohorts)
    definition = defs.resolve_job_def(planning.name)
    for request in run_requests(cohorts, known_cohorts(instance)):
        result = definition.execute_in_process(
            instance=instance,
            partition_key=request.partition_key,
            run_config={"loggers": {"console": {"config": {"log_level": log_level}}}},
            tags=request.tags,
            raise_on_error=False,
        )
        if not result.success:
            covered = request.partition_key or " to ".join(request.tags.values())
            yield f"planning of {covered} failed: {_why(result)}"


def _why(result: dg.ExecuteInProcessResult) -> str:
    """Return in which step a run failed, why, and where to find more."""
    where = f"see run {result.run_id} in the UI, or use --verbose"
    for event in result.filter_events(lambda event: event.is_step_failure):
        error = event.step_failure_data.error
        if error is not None:
            cause = error.cause or error
            return f"{event.step_key}: {cause.message.strip()}; {where}"
    return where


def require_known(cohorts: Iterable[str], instance: dg.DagsterInstance) -> None:
    """Refuse names that are neither partitions nor on the cluster, before anything is stored.

    Raises
    ------
    GroupError
        There is no such group and no such cohort; the message suggests a similar name.
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
            raise GroupError(f"there is no group and no cohort {cohort}{hint(cohort, known)}")


def decision_lines(engine: Engine, cohorts: Iterable[str], since: datetime | None) -> Iterator[str]:
    """Yield a line per group of some cohorts: its decision after a moment."""
    wanted, policies = set(cohorts), load_settings().policies
    for row in read_decisions(engine, since):
        if cohort_of(row["group"], policies) in wanted:
            has_plan = row["version"] is not None
            plan = f", version {row['version']}, {row['state']}" if has_plan else ""
            yield f"{row['group']}: {row['outcome']}{plan}: {row['reason']}"


def arguments_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(prog="python -m orchestration", description=__doc__)
    parser.add_argument("job", choices=[planning.name])
    parser.add_argument("cohorts", nargs="+", metavar="COHORT", help="a group, or a named cohort")
    parser.add_argument("--verbose", action="store_true", help="show all that Dagster logs")
    return parser


def main(words: Sequence[str] | None = None) -> int:
    """Plan, and print the decisions; the exit code is 0 if every run succeeded."""
    parser = arguments_parser()
    arguments = parser.parse_args(words)
    cohorts = arguments.cohorts
    log_level = "DEBUG" if arguments.verbose else "WARNING"
    if not os.environ.get("DAGSTER_HOME"):
        parser.error(
            "DAGSTER_HOME is not set. Set it to the folder in which Dagster keeps its runs"
        )
    try:
        with dg.DagsterInstance.get() as instance, StoreResource().connect() as engine:
            # By default Dagster opens a connection for each of a run's 300 queries.
            instance.optimize_for_webserver(_STATEMENT_MS, _RECYCLE_S, _MORE_CONNECTIONS)
            require_known(cohorts, instance)
            # Decisions are dated by the database's clock.
            since = max(PlanStore(engine).last_decisions().values(), default=None)
            failures = 0
            for failure in run(cohorts, instance, log_level=log_level):
                say(f"fairlead: {failure}", err=True)
                failures += 1
            say(*decision_lines(engine, cohorts, since))
    except FairleadError as error:
        say_error(error)
        return 1
    return 1 if failures else 0
