"""`pytest -p tests.older_kafka` runs the tests on the Kafka version in `KAFKA_OF_TESTS`.

The jars' digests are not checked, because they are known only for the sandbox's version.

Belongs here: setting the version before any module reads it. Belongs elsewhere: the list of
versions (`tests/jvm/test_versions.py`).
"""

import os

from fairlead.sandbox import jars


def _choose(version: str) -> None:
    packages = tuple(package.replace(jars.KAFKA_VERSION, version) for package in jars.PACKAGES)
    chosen = {"KAFKA_VERSION": version, "PACKAGES": packages, "check_digests": lambda _: None}
    vars(jars).update(chosen)


if version := os.environ.get("KAFKA_OF_TESTS"):
    _choose(version)
