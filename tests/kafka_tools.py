"""Run Kafka's command-line tools and small Java programs on Kafka's jars."""

import os
import subprocess
from pathlib import Path

from fairlead.errors import SandboxError
from fairlead.sandbox.jars import kafka_classpath
from fairlead.sandbox.java import BRIEF, find_java
from tests.waiting import PATIENCE_S


def run_kafka_tool(main_class: str, *arguments: str, timeout_s: float = PATIENCE_S) -> str:
    """Run one of Kafka's command-line tools and return its output.

    Parameters
    ----------
    main_class
        For example `org.apache.kafka.tools.consumer.group.ConsumerGroupCommand`.
    arguments
        Arguments of its command line, including `--bootstrap-server`.

    Raises
    ------
    SandboxError
        The tool failed (the message has its output), or took longer than `timeout_s` seconds.
    """
    return _run(main_class, *arguments, standard_input=None, timeout_s=timeout_s)


def run_java_source(
    source: Path, *arguments: str, standard_input: str | None = None, timeout_s: float = PATIENCE_S
) -> str:
    """Compile and run one Java file on Kafka's jars and return its output.

    Needs a JDK, because a Java runtime has no compiler.

    Raises
    ------
    SandboxError
        The program does not compile, fails (the message has its output), or takes too long.
    """
    return _run(str(source), *arguments, standard_input=standard_input, timeout_s=timeout_s)


def _run(*arguments: str, standard_input: str | None, timeout_s: float) -> str:
    command = [
        *(str(find_java()), *BRIEF, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"),
        *("-cp", os.pathsep.join(map(str, kafka_classpath())), *arguments),
    ]
    try:
        result = subprocess.run(
            command,
            input=standard_input or "",
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise SandboxError(f"{arguments[0]} takes longer than {timeout_s:.0f} s") from error
    if result.returncode:
        output = (result.stdout + result.stderr).strip()[-2000:]
        raise SandboxError(f"{arguments[0]} ended with code {result.returncode}:\n{output}")
    return result.stdout
