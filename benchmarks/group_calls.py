"""What a call of the brokers' assignor costs, in turn with Kafka's own uniform one.

Belongs here: the groups, running GroupCalls.java, and the report. Does not: the timing itself
(GroupCalls.java). Counted is the CPU of the thread that calls, so that a busy machine matters less.
"""

import json
import os
import statistics
import subprocess
from pathlib import Path
from typing import Any, Final

from benchmarks import harness
from benchmarks.services import folder
from fairlead.sandbox.jars import kafka_classpath
from fairlead.sandbox.java import find_java
from fairlead.sandbox.plugin import compile_java, plugin_jar

RESULTS: Final = Path(__file__).with_suffix(".json")
#: Topics, partitions, members, who reads what, rounds.
GROUPS: Final = (
    (10, 10_000, 100, "alike", 10),
    (10, 10_000, 100, "half", 10),
    (500, 1_000_000, 2_000, "alike", 6),
    (500, 1_000_000, 2_000, "half", 6),
)


def main() -> None:
    """Measure, print, and write `group_calls.json`."""
    options = harness.parser(__doc__)
    options.add_argument("--partitions", type=int, nargs="*", help="of those groups alone")
    with harness.measuring(options, RESULTS) as bench, folder() as place:
        only = bench.options.partitions or [group[1] for group in GROUPS]
        jars = [plugin_jar(), *kafka_classpath()]
        compile_java([Path(__file__).with_name("GroupCalls.java")], jars, place, release=17)
        classpath = os.pathsep.join(map(str, [place, *jars]))
        rows = [_measure(classpath, group) for group in GROUPS if group[1] in only]
        bench.write({"rows": rows})
        bench.show(
            "CPU seconds of a call",
            ("partitions", "members", "reading", "call", "first", "median"),
            (
                (row["partitions"], row["members"], row["reading"], what, *times.values())
                for row in rows
                for what, times in row["cpu_s"].items()
            ),
        )


def _measure(classpath: str, group: tuple[int, int, int, str, int]) -> dict[str, Any]:
    command = [str(find_java()), "-Xmx3g", "-cp", classpath, "fairlead.kafka.GroupCalls"]
    result = subprocess.run(
        [*command, *map(str, group)], capture_output=True, text=True, check=True, timeout=900
    )
    calls: dict[str, list[float]] = json.loads(result.stdout)
    topics, partitions, members, reading, _ = group
    return {
        "topics": topics,
        "partitions": partitions,
        "members": members,
        "reading": reading,
        "cpu_s": {
            what: {"first": round(times[0], 4), "median": round(statistics.median(times[1:]), 4)}
            for what, times in calls.items()
        },
    }


if __name__ == "__main__":
    main()
