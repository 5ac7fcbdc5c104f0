"""Run Kafka's command-line tools."""

import os
import subprocess

from fairlead.errors import SandboxError
from fairlead.sandbox.jars import kafka_classpath
from fairlead.sandbox.java import BRIEF, find_java
from tests.waiting import PATIENCE_S


def run_kafka_tool(main_class: str, *arguments: str, timeout_s: float = PATIENCE_S) -> str:
    """Run one of Kafka's tools and return what it printed.

    Parameters
    ----------
    main_class
        Such as `org.apache.kafka.tools.consumer.group.ConsumerGroupCommand`.
    arguments
        As on its command line; `--bootstrap-server` among them.

    Raises
    ------
    SandboxError
        It failed, with the end of its output, or took longer than `timeout_s` seconds.
    """
    command = [
        *(str(find_java()), *BRIEF, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"),
        *("-cp", os.pathsep.join(map(str, kafka_classpath())), main_class, *arguments),
    ]
    try:
        result = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise SandboxError(f"{main_class} takes longer than {timeout_s:.0f} s") from error
    if result.returncode:
        output = (result.stdout + result.stderr).strip()[-2000:]
        raise SandboxError(f"{main_class} ended with code {result.returncode}:\n{output}")
    return result.stdout
