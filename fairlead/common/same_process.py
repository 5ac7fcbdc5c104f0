"""Finding a process again by pid and start time, because pids are reused.

Belongs here: finding processes. Belongs elsewhere: ending them.
"""

from typing import Final

import psutil

# Maximum difference in seconds between the stored and the present start time of a process. psutil
# computes start times from the boot time, which changes when the clock is adjusted.
_CLOCK_TOLERANCE_S: Final = 5.0


def same_process(pid: int, started_at: float) -> psutil.Process | None:
    """Return the process with this pid and start time; None if it has ended.

    Parameters
    ----------
    pid
        The process id.
    started_at
        Start time in seconds since 1970, from `psutil.Process.create_time`.

    Examples
    --------
    >>> this = psutil.Process()
    >>> same_process(this.pid, this.create_time()) == this
    True
    >>> same_process(this.pid, this.create_time() - 60.0) is None
    True
    """
    try:
        process = psutil.Process(pid)
        same = abs(process.create_time() - started_at) < _CLOCK_TOLERANCE_S
        return process if same and process.status() != psutil.STATUS_ZOMBIE else None
    except psutil.Error:
        return None
