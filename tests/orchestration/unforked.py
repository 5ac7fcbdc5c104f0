"""Launch a job under a Dagster that lacks a private name which forking takes from it.

`python -m tests.orchestration.unforked HOME FILE` does as Dagster's daemon, with code that Dagster
serves, and waits until the run has ended.
"""

import sys

import dagster as dg
import dagster._core.code_pointer as pointers
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import ModuleTarget

from tests.orchestration import forked
from tests.waiting import eventually

JOB = forked.noted
ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE]


def main(home: str, file: str) -> None:
    """Launch the job; say whether its launcher can be monitored."""
    del pointers.PackageCodePointer
    target = ModuleTarget(forked.__name__, None, None, location_name="here")
    with (
        dg.DagsterInstance.from_config(home) as instance,
        WorkspaceProcessContext(instance, target) as context,
    ):
        workspace = context.create_request_context()
        repository = workspace.get_code_location("here").get_repository("__repository__")
        served = repository.get_full_job(JOB.name)
        run_id = instance.create_run_for_job(
            JOB,
            run_config={"ops": {forked.note_pid.name: {"config": {"file": file}}}},
            remote_job_origin=served.get_remote_origin(),
            job_code_origin=served.get_python_origin(),
        ).run_id
        instance.launch_run(run_id, workspace)
        eventually(
            lambda: instance.get_runs_count(dg.RunsFilter([run_id], statuses=ENDED)) == 1, "it ends"
        )
        monitored = instance.run_launcher.supports_check_run_worker_health
        sys.stderr.write(f"monitored: {monitored}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
