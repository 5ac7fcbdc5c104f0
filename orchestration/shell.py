"""`python -m orchestration GROUP [GROUP ...]`: planning runs in this process, as the schedule's.

The demo uses it; people use `fairlead plan`, or the UI. Dagster records the runs in `DAGSTER_HOME`,
so they appear in the UI. Partitions that Dagster does not know yet are added first. A run that
fails does not end the others; its log says why.
"""

import argparse
from collections.abc import Sequence

import dagster as dg

from assets.partitions import COHORT
from orchestration.definitions import defs
from orchestration.jobs import planning
from orchestration.runs import known_cohorts, run_requests

#: Dagster's connections: time-out of a query, milliseconds; maximum age for reuse, seconds; maximum
#: number beside the first. The age is short, because a query fails on a lost connection.
_STATEMENT_MS, _RECYCLE_S, _MORE_CONNECTIONS = 60_000, 5, 20


def run(cohorts: Sequence[str], instance: dg.DagsterInstance) -> int:
    """Plan cohorts, in as few runs as possible; return the number of runs that failed."""
    instance.add_dynamic_partitions(COHORT, cohorts)
    definition = defs.resolve_job_def(planning.name)
    results = [
        definition.execute_in_process(
            instance=instance,
            partition_key=request.partition_key,
            tags=request.tags,
            raise_on_error=False,
        )
        for request in run_requests(cohorts, known_cohorts(instance))
    ]
    return sum(not result.success for result in results)


def main(words: Sequence[str] | None = None) -> int:
    """Plan; the exit code is 0 if every run succeeded."""
    parser = argparse.ArgumentParser(prog="python -m orchestration", description=__doc__)
    parser.add_argument("cohorts", nargs="+", metavar="COHORT", help="a group, or a named cohort")
    cohorts = parser.parse_args(words).cohorts
    with dg.DagsterInstance.get() as instance:
        # By default Dagster opens a connection for each of a run's 300 queries.
        instance.optimize_for_webserver(_STATEMENT_MS, _RECYCLE_S, _MORE_CONNECTIONS)
        return int(run(cohorts, instance) > 0)
