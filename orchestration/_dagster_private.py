"""What starting runs by fork takes from Dagster's private modules, all of it.

Belongs here: those imports, and what this version of Dagster lacks of them. Does not: their use
(`launcher`, `proxy`).
"""

from typing import Final

try:
    from dagster._cli import main
    from dagster._core.code_pointer import ModuleCodePointer, PackageCodePointer
    from dagster._core.launcher.base import CheckRunHealthResult, LaunchRunContext, WorkerStatus
    from dagster._core.remote_origin import (
        CodeLocationOrigin,
        GrpcServerCodeLocationOrigin,
        ManagedGrpcPythonEnvCodeLocationOrigin,
    )
    from dagster._core.run_coordinator import SubmitRunContext
    from dagster._grpc.types import ExecuteRunArgs
    from dagster._serdes import ConfigurableClassData, serialize_value
except ImportError as error:
    _missing = str(error)
else:
    _missing = ""

__all__ = [
    "MISSING",
    "CheckRunHealthResult",
    "CodeLocationOrigin",
    "ConfigurableClassData",
    "ExecuteRunArgs",
    "GrpcServerCodeLocationOrigin",
    "LaunchRunContext",
    "ManagedGrpcPythonEnvCodeLocationOrigin",
    "ModuleCodePointer",
    "PackageCodePointer",
    "SubmitRunContext",
    "WorkerStatus",
    "main",
    "serialize_value",
]

#: What this version of Dagster lacks, in Python's words; empty: nothing, runs can be forked.
MISSING: Final = _missing
