"""Run programs until they end, and check how they ended.

Belongs here: running a program and showing its output if it fails. Belongs elsewhere: programs that
run beside a test.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from tests.waiting import PATIENCE_S

#: The command `fairlead`.
FAIRLEAD: Final = Path(sys.executable).with_name("fairlead")


def ended(
    *command: str | Path, status: int | None = 0, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a program until it ends, and return its output; `options` are those of `subprocess.run`.

    Fails with the output if the program's exit status is not `status`; None: any status is right.
    """
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "timeout": PATIENCE_S} | options
    done = subprocess.run(command, text=True, check=False, **given)
    output = f"{done.stdout}{done.stderr}"
    assert status in {None, done.returncode}, f"{command}: status {done.returncode}\n{output}"
    return done
