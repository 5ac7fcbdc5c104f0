"""What Python workers of a warm server are forked from: a process that has imported their work.

Belongs here: the imports. Does not: the work (`lag`, `planning`), nor anything of Spark's protocol.
Spark starts it by the name that `spark.python.daemon.module` holds.
"""

import pandas as pd  # PyArrow looks for it when it makes its first array
import pyarrow.dataset as ds  # and for this when it reads its first file
from pyspark import worker
from pyspark.daemon import manager

from fairlead.spark import lag, planning

__all__ = ["ds", "lag", "pd", "planning", "worker"]

if __name__ == "__main__":
    manager()
