"""Spark's JVM gets all its properties, and other users cannot read the secret ones."""

import json
import sys
from pathlib import Path

import pytest

from tests.programs import ended

VALUE = " hunter2\\ = é\n#!"
#: Program for a separate process, because each process starts a JVM only once.
PROGRAM = """
import json, os, re, stat, sys, psutil
from fairlead.settings import SparkSettings
from fairlead.spark import launch, session

secret = json.loads(sys.argv[1])
seen = {}
initialize = launch.SparkContext._ensure_initialized

def initialized(*args, **options):
    if "path" not in seen:
        found = re.search('--properties-file "(.+?)"', os.environ["PYSPARK_SUBMIT_ARGS"])
        seen["path"] = found[1]
        seen["mode"] = oct(stat.S_IMODE(os.stat(found[1]).st_mode))
    initialize(*args, **options)

launch.SparkContext._ensure_initialized = initialized
settings = SparkSettings(master="local[1]", properties={
    "spark.hadoop.fs.s3a.secret.key": secret, "spark.driver.memory": "600m"
})
context = session.build_session(settings).sparkContext
started = [one for one in psutil.Process().children(recursive=True) if one.name() == "java"]
print(json.dumps({
    **seen,
    "left": os.path.exists(seen["path"]),
    "arguments": os.environ.get("PYSPARK_SUBMIT_ARGS"),
    "command lines": [" ".join(one.cmdline()) for one in started],
    "environments": [str(one.environ()) for one in started],
    "known": context.getConf().get("spark.hadoop.fs.s3a.secret.key"),
    "hadoop": context._jsc.hadoopConfiguration().get("fs.s3a.secret.key"),
    "master": context.master,
}))
"""


@pytest.mark.spark
def test_properties_with_secrets_are_on_no_command_line() -> None:
    """The JVM gets secret properties, but no command line or environment shows them."""
    result = ended(sys.executable, "-c", PROGRAM, json.dumps(VALUE))
    output = json.loads(result.stdout.splitlines()[-1])
    assert any("-Xmx600m" in line for line in output["command lines"])
    assert "hunter2" not in str(output["command lines"]) + str(output["environments"])
    assert (output["known"], output["master"]) == (VALUE, "local[1]")
    assert "hunter2" in output["hadoop"]
    assert (output["mode"], output["left"], output["arguments"]) == ("0o600", False, None)
    assert not Path(output["path"]).exists()
