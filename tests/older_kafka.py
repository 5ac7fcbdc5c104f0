"""`pytest -p tests.older_kafka`: the sandbox's Kafka is of the version that `KAFKA_OF_TESTS` names.

Belongs here: the choice, before any module has read the version. Does not: which versions
(`tests/jvm/test_versions.py`). Only the sandbox's own version is held to known digests.
"""

import os

from fairlead.sandbox import jars


def _choose(version: str) -> None:
    packages = tuple(package.replace(jars.KAFKA_VERSION, version) for package in jars.PACKAGES)
    chosen = {"KAFKA_VERSION": version, "PACKAGES": packages, "check_digests": lambda _: None}
    vars(jars).update(chosen)


if version := os.environ.get("KAFKA_OF_TESTS"):
    _choose(version)
