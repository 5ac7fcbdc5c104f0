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

from fairlead.common.same_process import same_process
from orchestration import _dagster_private as private
from orchestration.forkserver import Forked

log: Final = logging.getLogger(__name__)

#: The process of a run: whose it is, its pid, and when it started, in seconds since 1970.
PROCESS_TAG: Final = "fairlead/process"


class ForkingRunLauncher(dg.DefaultRunLauncher):
    """Has the fork server of this Dagster home start a run; Dagster's own way where there is none.

    In dagster.yaml::

        run_launcher:
          module: orchestration.launcher
          class: ForkingRunLauncher

    Notes
    -----
    A run starts within 0.1 s instead of after the imports of Dagster, of this code and of Spark's
    client. Daemon, webserver and runs are of one machine and of one user, as `dagster dev` has it;
    code that is served from elsewhere, or that the server has not imported, is started as ever.
    So is every run under a Dagster that lacks a private name which forking takes from it.
    """

    def __init__(self, inst_data: "private.ConfigurableClassData | None" = None) -> None:
        super().__init__(inst_data)
        if private.MISSING:
            log.warning("Dagster starts runs in its own way, without a fork: %s", private.MISSING)

    def launch_run(self, context: "private.LaunchRunContext") -> None:
        """Start a run's process."""
        run = context.dagster_run
        forked = None if private.MISSING else self._forked(run)
        if forked is None:
            super().launch_run(context)
            return
        try:
            started_at = psutil.Process(forked.pid).create_time()
            about = {"run": run.run_id, "pid": forked.pid, "started_at": started_at}
            self._instance.add_run_tags(run.run_id, {PROCESS_TAG: json.dumps(about)})
            going = forked.go()
        except psutil.NoSuchProcess:
            going = False
        if not going:  # it was killed while it waited
            self._instance.add_run_tags(run.run_id, {PROCESS_TAG: "{}"})
            super().launch_run(context)
            return
        Thread(target=self._watch, args=(run.run_id, forked), daemon=True).start()

    def _forked(self, run: dg.DagsterRun) -> Forked | None:
        """Return a process for a run, which waits; None: it has to start as Dagster's do."""
        origin, remote = run.job_code_origin, run.remote_job_origin
        if origin is None or origin.executable_path != sys.executable:
            return None
        if remote is not None and not _is_here(remote.repository_origin.code_location_origin):
            return None  # whoever serves the code has the surroundings for it
        pointer = origin.repository_origin.code_pointer
        if not isinstance(pointer, private.ModuleCodePointer | private.PackageCodePointer):
            return None
        arguments = private.ExecuteRunArgs(origin, run.run_id, self._instance.get_ref())
        return Forked.ask(
            os.environ.get("DAGSTER_HOME", self._instance.root_directory),
            f"{private.__name__}:main",
            ["api", "execute_run", private.serialize_value(arguments)],
            module=pointer.module,
            folder=pointer.working_directory,
            outlives=True,  # as Dagster's own do the daemon
        )

    def terminate(self, run_id: str) -> bool:
        """Interrupt a run; False: it has ended, or its process is gone."""
        run = self._instance.get_run_by_id(run_id) if self.has_instance else None
        if run is None or run.is_finished or not _is_forked(run):
            return bool(super().terminate(run_id))  # type: ignore[no-untyped-call]
        process = _process(run)
        if process is None:
            return False
        self._instance.report_run_canceling(run)
        process.send_signal(signal.SIGINT)
        return True

    @property
    def supports_check_run_worker_health(self) -> bool:
        """Dagster's monitoring asks for runs whose launcher is gone, too."""
        return not private.MISSING

    def check_run_worker_health(self, run: dg.DagsterRun) -> "private.CheckRunHealthResult":
        """Say whether the process of a run that was forked is there; of others nobody knows."""
        if _is_forked(run) and _process(run) is None:
            return private.CheckRunHealthResult(private.WorkerStatus.FAILED, "its process is gone")
        return private.CheckRunHealthResult(private.WorkerStatus.RUNNING)

    def _watch(self, run_id: str, forked: Forked) -> None:
        """Report a run whose process has ended without saying how it went."""
        code = forked.wait()
        try:
            run = self._instance.get_run_by_id(run_id)
            if run is not None and not run.is_finished:
                self._instance.report_run_failed(
                    run, f"The run's process {forked.pid} ended with code {code}"
                )
        except Exception:  # its thread ends here; Dagster's monitoring will miss the process
            log.exception("Run %s: its process ended with code %d", run_id, code)


def _is_here(origin: "private.CodeLocationOrigin") -> bool:
    """Whether code is served by Dagster's own processes of this machine, as `dagster dev` does.

    Examples
    --------
    >>> _is_here(private.GrpcServerCodeLocationOrigin("localhost", socket="/tmp/one"))
    True
    >>> _is_here(private.GrpcServerCodeLocationOrigin("code", port=4000))
    False
    """
    if isinstance(origin, private.GrpcServerCodeLocationOrigin):
        return origin.socket is not None
    return isinstance(origin, private.ManagedGrpcPythonEnvCodeLocationOrigin)


def _is_forked(run: dg.DagsterRun) -> bool:
    """Whether a run has a process that was forked."""
    return _known(run) is not None


def _known(run: dg.DagsterRun) -> tuple[int, float] | None:
    """Return the pid of a run's process and when it started; None: none was forked for it.

    Tags of a run are copied to its repetition, and may be typed by somebody.
    """
    try:
        about = json.loads(run.tags[PROCESS_TAG])
        return (
            (int(about["pid"]), float(about["started_at"])) if about["run"] == run.run_id else None
        )
    except (KeyError, TypeError, ValueError):
        return None


def _process(run: dg.DagsterRun) -> psutil.Process | None:
    """Return the process of a run that was forked; None: it is gone, or is none of the server's."""
    known = _known(run)
    process = None if known is None else same_process(*known)
    try:
        forked = process is not None and any("forkserver" in word for word in process.cmdline())
    except psutil.Error:
        return None
    return process if forked else None
