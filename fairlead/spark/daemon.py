"""The process from which Python workers of a warm server are forked, with their imports.

Belongs here: the imports. Does not: the work (`lag`, `planning`), nor anything of Spark's protocol.
Spark starts it by the name that `spark.python.daemon.module` holds.
"""

import pandas as pd  # PyArrow imports it for its first array
import pyarrow.dataset as ds  # and this for its first file
from pyspark import worker
from pyspark.daemon import manager

from fairlead.spark import lag, planning

__all__ = ["ds", "lag", "pd", "planning", "worker"]

if __name__ == "__main__":
    manager()
