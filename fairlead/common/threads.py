"""How many threads linear algebra takes: one.

Belongs here: saying so before numpy is there to hear it. Does not: processes and pools.
"""

import os


def one_thread() -> None:
    """Let numpy's linear algebra take one thread, unless the environment says how many.

    Analyses solve small systems by the hundred: on a busy machine its threads wait for each other
    for longer than they work. It counts in this process if numpy has not been imported, and in
    those that it starts.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
