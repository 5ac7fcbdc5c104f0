"""The process that forks the Python workers of a warm server, with their imports.

Belongs here: the imports. Does not: the work (`lag`, `planning`), nor Spark's protocol. Spark
starts the module that `spark.python.daemon.module` names.
"""

import pandas as pd  # PyArrow would import pandas for its first array
import pyarrow.dataset as ds  # PyArrow would import this module for its first file
from pyspark import worker
from pyspark.daemon import manager

from fairlead.spark import lag, planning

__all__ = ["ds", "lag", "pd", "planning", "worker"]

if __name__ == "__main__":
    manager()
