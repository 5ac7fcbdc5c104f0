"""Limiting numpy's linear algebra to one thread.

Belongs here: setting the number of threads before numpy is imported. Belongs elsewhere: processes
and pools.
"""

import os


def one_thread() -> None:
    """Limit numpy's linear algebra to one thread, unless the environment sets another number.

    Analyses solve hundreds of small systems of equations. On a busy machine, several threads would
    mostly wait for each other. Call this before numpy is imported; it also affects child processes.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
