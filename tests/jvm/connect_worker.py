"""One worker of a Connect cluster in a storm.

    python connect_worker.py '{"configs": {...}, "folder": "..."}'

It says in `port` where it answers, and is then a worker like any other: its sink writes into its
folder what members of a storm write (`tests/fairlead/followers/storm_worker.py`).
"""

import json
import os
import sys
from pathlib import Path

from fairlead.sandbox.kafka import HOST, free_ports
from tests.jvm.connect import worker_command

STRING = "org.apache.kafka.connect.storage.StringConverter"
#: Workers that vanish are gone soon, and so are tasks that wait for them to come back.
QUICK = {
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "1000",
    "rebalance.timeout.ms": "10000",
    "scheduled.rebalance.max.delay.ms": "2000",
    "offset.flush.interval.ms": "1000",
}


def main(raw: str) -> None:
    """Become a worker."""
    task = json.loads(raw)
    folder, configs = Path(task["folder"]), task["configs"]
    group = configs["group_id"]
    (port,) = free_ports(1)
    properties = {
        "bootstrap.servers": configs["bootstrap_servers"],
        "group.id": f"{group}-workers",
        "key.converter": STRING,
        "value.converter": STRING,
        "listeners": f"http://{HOST}:{port}",
        **QUICK,
        "consumer.partition.assignment.strategy": "fairlead.kafka.PlanAssignor",
        "consumer.fairlead.plan.topic": configs["plan_topic"],
        "consumer.fairlead.rejoin.jitter.ms": str(int(configs["rejoin_jitter_s"] * 1000)),
    }
    for kept in ("config", "offset", "status"):
        properties[f"{kept}.storage.topic"] = f"{group}-{kept}"
        properties[f"{kept}.storage.replication.factor"] = "-1"
    for name in ("session_timeout_ms", "heartbeat_interval_ms", "metadata_max_age_ms"):
        properties["consumer." + name.replace("_", ".")] = str(configs[name])
    lines = [f"{name}={value}\n" for name, value in properties.items()]
    (folder / "worker.properties").write_text("".join(lines))
    (folder / "messages").touch()
    (folder / "port").write_text(str(port))
    command = worker_command(
        folder, Path(configs["classes"]), "ConnectDistributed", "worker.properties"
    )
    os.chdir(folder)
    os.execv(command[0], command)  # noqa: S606 - its process is the worker


if __name__ == "__main__":
    main(sys.argv[1])
