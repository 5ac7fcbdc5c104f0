"""Failed connections of kafka-python's clients to the plan topic."""

import sys

from tests.programs import ended

# Run in a separate process, because kafka-python does not close refused sockets.
PROBE = """
import threading
from fairlead.followers.client_assignors.kafka_python import fetch_lags
from fairlead.followers.kafka_python.plan_source import KafkaPythonSource
nowhere = {"bootstrap_servers": "localhost:1", "bootstrap_timeout_ms": 200}
for ask in (
    lambda: KafkaPythonSource.open("group", nowhere, "plans"),
    lambda: fetch_lags("group", nowhere, ["t"]),
):
    try:
        ask()
    except Exception as error:
        print(type(error).__name__, threading.active_count())
"""


def test_failed_connection_leaves_no_thread_behind() -> None:
    """After failed connections, only the main thread is left."""
    output = ended(sys.executable, "-c", PROBE).stdout
    assert output.splitlines() == ["KafkaTimeoutError 1"] * 2
