"""Java's archive of the classes that Spark loads: Spark uses it where it is there."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from fairlead.spark.class_archive import PATH, java_options


def test_no_option_names_a_file_that_is_not_there(tmp_path: Path) -> None:
    """Java would warn of it at each start."""
    assert java_options(tmp_path / "missing.jsa") == ""


@pytest.mark.spark
def test_spark_maps_the_archive(spark: SparkSession) -> None:
    """`make install` makes it: `python -m fairlead.spark.class_archive`."""
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 - PySpark has no public name for it
    mapped = Path(f"/proc/{gateway.proc.pid}/maps").read_text()
    assert str(PATH) in mapped
