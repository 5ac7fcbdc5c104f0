"""Run a job from a shell, without the UI: `python -m orchestration planning GROUP [GROUP ...]`.

What the schedule does, for chosen cohorts, now, in this process. Runs are recorded where
`DAGSTER_HOME` says, and so appear in the UI. Partitions that Dagster does not know yet are added
first.
"""

import argparse
import os
import sys

import dagster as dg

from assets.partitions import COHORT
from orchestration.definitions import defs
from orchestration.runs import known_cohorts, run_requests


def run(job: str, cohorts: list[str], instance: dg.DagsterInstance) -> bool:
    """Run a job over cohorts, in as few runs as possible; returns whether all succeeded."""
    instance.add_dynamic_partitions(COHORT, cohorts)
    definition = defs.resolve_job_def(job)
    return all(
        definition.execute_in_process(
            instance=instance,
            partition_key=request.partition_key,
            tags=request.tags,
            raise_on_error=False,
        ).success
        for request in run_requests(cohorts, known_cohorts(instance))
    )


def arguments_parser() -> argparse.ArgumentParser:
    """Return what reads the command line."""
    parser = argparse.ArgumentParser(prog="python -m orchestration", description=__doc__)
    parser.add_argument("job", choices=["planning", "publication", "adoption"])
    parser.add_argument("cohorts", nargs="+", metavar="COHORT", help="a group, or a named cohort")
    return parser


def main() -> int:
    """Run; the exit code is 0 when every run succeeded."""
    parser = arguments_parser()
    arguments = parser.parse_args()
    if not os.environ.get("DAGSTER_HOME"):
        parser.error("DAGSTER_HOME is not set: it says where Dagster keeps its runs")
    with dg.DagsterInstance.get() as instance:
        return 0 if run(arguments.job, arguments.cohorts, instance) else 1


if __name__ == "__main__":
    sys.exit(main())
