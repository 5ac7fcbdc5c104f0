"""Workers of Kafka Connect, with a sink of the tests.

Belongs here: how they are started. Does not: any expectation.
"""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from fairlead.sandbox.jars import KAFKA_VERSION
from fairlead.sandbox.java import find_java
from fairlead.sandbox.kafka import HOST, free_ports
from fairlead.sandbox.plugin import compile_java, plugin_jar
from tests.jvm.ivy import downloaded

#: The sink of the tests.
SINK: Final = Path(__file__).with_name("sink") / "FileSink.java"


def connect_jars() -> list[Path]:
    """Return the jars of a worker, with Fairlead's among them."""
    jars = downloaded(
        f"kafka-connect-{KAFKA_VERSION}",
        f"org.apache.kafka:connect-runtime:{KAFKA_VERSION}",
        "org.slf4j:slf4j-simple:1.7.36",
    )
    return [plugin_jar(), *jars]


def sink_classes(folder: Path) -> Path:
    """Compile the sink; returns the folder of its classes."""
    compile_java([SINK], connect_jars(), folder / "classes", release=17)
    return folder / "classes"


def worker_command(folder: Path, classes: Path, *arguments: str) -> list[str]:
    """Return what starts a worker whose sink writes into a folder.

    Parameters
    ----------
    folder, classes
        Where it writes, and what `sink_classes` returned.
    arguments
        Which kind of worker, and its files of properties.
    """
    kind, *files = arguments
    return [
        *(str(find_java()), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
        *("-Dorg.slf4j.simpleLogger.showDateTime=true", f"-Dsink.folder={folder}"),
        *("-cp", os.pathsep.join(map(str, [classes, *connect_jars()]))),
        *(f"org.apache.kafka.connect.cli.{kind}", *files),
    ]


@contextmanager
def file_sink(folder: Path, name: str, topic: str, worker: Mapping[str, str]) -> Iterator[Path]:
    """Run a worker with one sink of two tasks; yields the file that it writes.

    Parameters
    ----------
    folder
        For its properties and its log.
    name, topic
        The sink's name, and what it reads.
    worker
        Properties of the worker, among them how to reach the cluster.
    """
    (port,) = free_ports(1)
    string = "org.apache.kafka.connect.storage.StringConverter"
    written = folder / "messages"
    properties = {
        "worker": {
            "key.converter": string,
            "value.converter": string,
            "listeners": f"http://{HOST}:{port}",
            "offset.storage.file.filename": str(folder / "offsets"),
            **worker,
        },
        "sink": {
            "name": name,
            "connector.class": "FileSink",
            "tasks.max": "2",
            "topics": topic,
        },
    }
    for what, settings in properties.items():
        lines = [f"{key}={value}\n" for key, value in settings.items()]
        (folder / f"{what}.properties").write_text("".join(lines))
    classes = sink_classes(folder)
    command = worker_command(
        folder, classes, "ConnectStandalone", "worker.properties", "sink.properties"
    )
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT) as process,
    ):
        try:
            yield written
        finally:
            ended = process.poll()
            process.terminate()
            assert ended is None, (folder / "log").read_text()[-3000:]
