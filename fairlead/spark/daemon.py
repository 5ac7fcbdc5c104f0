"""The process that forks the Python workers of a warm server, after importing what they need.

Belongs here: the imports. Belongs elsewhere: the work (`lag`, `planning`), and Spark's protocol.
Spark starts this module because `spark.python.daemon.module` names it.
"""

import pandas as pd  # else PyArrow imports it in each worker, for the first array
import pyarrow.dataset as ds  # else PyArrow imports it in each worker
from pyspark import worker
from pyspark.daemon import manager

from fairlead.spark import lag, planning

__all__ = ["ds", "lag", "pd", "planning", "worker"]

if __name__ == "__main__":
    manager()
