"""The number of threads of numpy's linear algebra: one.

Belongs here: setting it before numpy is imported. Does not: processes and pools.
"""

import os


def one_thread() -> None:
    """Limit numpy's linear algebra to one thread, unless the environment sets another number.

    Analyses solve hundreds of small systems; on a busy machine several threads mostly wait for each
    other. In this process it works only before numpy is imported; it also holds for child
    processes.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
