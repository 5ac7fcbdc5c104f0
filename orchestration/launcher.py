"""Starts runs in processes that the fork server forks, where one runs (`forkserver`).

Belongs here: Dagster's side of it: launching, cancelling, a process that ends without having told.
Does not: forking.
"""

import json
import logging
import os
import signal
import sys
from threading import Thread
from typing import Final

import dagster as dg
import psutil
from dagster._core.launcher.base import LaunchRunContext
from dagster._core.launcher.default_run_launcher import DefaultRunLauncher
from dagster._grpc.types import ExecuteRunArgs
from dagster._serdes import serialize_value

from fairlead.common.same_process import same_process
from orchestration.forkserver import Forked

log: Final = logging.getLogger(__name__)

#: The process of a run: its pid, and when it started, in seconds since 1970.
PROCESS_TAG: Final = "fairlead/process"


class ForkingRunLauncher(DefaultRunLauncher):
    """Has the fork server of this Dagster home start a run; Dagster's own way where there is none.

    In dagster.yaml::

        run_launcher:
          module: orchestration.launcher
          class: ForkingRunLauncher

    Notes
    -----
    A run starts within 0.1 s instead of after the imports of Dagster, of this code and of Spark's
    client. Daemon, webserver and runs are of one machine and of one user, as `dagster dev` has it.
    """

    def launch_run(self, context: LaunchRunContext) -> None:
        """Start a run's process."""
        run = context.dagster_run
        origin = run.job_code_origin
        if origin is None or origin.executable_path != sys.executable:
            super().launch_run(context)
            return
        ref = self._instance.get_ref()
        question = serialize_value(ExecuteRunArgs(origin, run.run_id, ref))
        words = ["api", "execute_run", question]
        forked = Forked.ask(self._instance.root_directory, "dagster._cli:main", words)
        if forked is None:
            super().launch_run(context)
            return
        try:
            started_at = psutil.Process(forked.pid).create_time()
        except psutil.NoSuchProcess:  # it has ended already
            started_at = 0.0
        tag = json.dumps({"pid": forked.pid, "started_at": started_at})
        self._instance.add_run_tags(run.run_id, {PROCESS_TAG: tag})
        Thread(target=self._watch, args=(run.run_id, forked), daemon=True).start()

    def terminate(self, run_id: str) -> bool:
        """Interrupt a run; False: it has ended, or its process is gone."""
        run = self._instance.get_run_by_id(run_id) if self.has_instance else None
        if run is None or PROCESS_TAG not in run.tags:
            return bool(super().terminate(run_id))  # type: ignore[no-untyped-call]
        process = same_process(**json.loads(run.tags[PROCESS_TAG]))
        if run.is_finished or process is None:
            return False
        self._instance.report_run_canceling(run)
        os.kill(process.pid, signal.SIGINT)
        return True

    def _watch(self, run_id: str, forked: Forked) -> None:
        """Report a run whose process has ended without saying how it went."""
        code = forked.wait()
        try:
            run = self._instance.get_run_by_id(run_id)
            if run is not None and not run.is_finished:
                self._instance.report_run_failed(
                    run, f"The run's process {forked.pid} ended with code {code}"
                )
        except (dg.DagsterError, OSError):
            log.exception("Run %s: its process ended with code %d", run_id, code)
