"""Run Spring's listener containers, whose consumers report their work, in a Java process.

Belongs here: downloading Spring, and running the process. Belongs elsewhere: assertions.
"""

import os
from pathlib import Path
from typing import Final

from fairlead.sandbox.java import find_java
from fairlead.sandbox.plugin import compile_java
from tests.jvm.ivy import downloaded
from tests.programs import ended

LISTENER: Final = Path(__file__).with_name("spring") / "SpringListener.java"
VERSION: Final = "4.1.2"


def listen(classpath: str, folder: Path, *arguments: str) -> list[float]:
    """Run the listener until all records are read; return its working seconds by partition.

    Parameters
    ----------
    classpath, folder
        Class path of the jar and Kafka's clients, and an empty folder for the compiled listener.
    arguments
        Command-line arguments of `SpringListener`.
    """
    spring = downloaded(
        f"spring-kafka-{VERSION}",
        f"org.springframework.kafka:spring-kafka:{VERSION}",
        without="org.apache.kafka",
    )
    jars = [*map(Path, classpath.split(os.pathsep)), *spring]
    compile_java([LISTENER], jars, folder, release=17)
    java = (find_java(), "-cp", os.pathsep.join(map(str, [folder, *jars])))
    done = ended(*java, "SpringListener", *arguments)
    return [float(line.split()[1]) for line in done.stdout.splitlines()]
