"""`python -m orchestration GROUP [GROUP ...]`: run the schedule's planning job in this process.

The demo uses this command; people use `fairlead plan`, or the UI. Dagster records the runs in
`DAGSTER_HOME`, so they appear in the UI. Partitions that Dagster does not know yet are added first.
If a run fails, its log has the reason, and the other runs continue.
"""

import argparse
from collections.abc import Sequence

import dagster as dg

from assets.partitions import COHORT
from orchestration.definitions import defs
from orchestration.jobs import planning
from orchestration.runs import known_cohorts, run_requests

#: Limits of Dagster's connections to its database: milliseconds until a query times out; seconds
#: for which a connection is reused; maximum number of connections besides the first. Connections
#: are reused only for seconds, because they may be lost, and a query on a lost connection fails.
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
    """Plan the cohorts in the arguments; return 0 if every run succeeded, else 1."""
    parser = argparse.ArgumentParser(prog="python -m orchestration", description=__doc__)
    parser.add_argument("cohorts", nargs="+", metavar="COHORT", help="a group, or a named cohort")
    cohorts = parser.parse_args(words).cohorts
    with dg.DagsterInstance.get() as instance:
        # Reuse connections: by default, Dagster opens one for each of a run's 300 queries.
        instance.optimize_for_webserver(_STATEMENT_MS, _RECYCLE_S, _MORE_CONNECTIONS)
        return int(run(cohorts, instance) > 0)
