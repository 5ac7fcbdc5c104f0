"""The bill of materials of the image and the sandbox in CycloneDX format, for `make bom`.

Belongs here: Python packages and jars, with their licences. Belongs elsewhere: Debian's packages,
which `dpkg` lists, and libraries that are bundled in a wheel.
"""

import hashlib
import re
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any, Final

import pyspark
from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement

from fairlead.common.installed import DISTRIBUTION
from fairlead.sandbox import jars

ROOT: Final = Path(__file__).parents[2]
TARGET: Final = ROOT / "dist" / "fairlead.cdx.json"
#: Licence in a package's classifiers or metadata -> SPDX licence.
_KNOWN: Final = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache Software License": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "GNU Library or Lesser General Public License (LGPL)": "LGPL-3.0-or-later",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
#: Heading in Spark's LICENSE -> SPDX licence of the jars that are listed below it.
_HEADINGS: Final = {
    "BSD 0-Clause": "0BSD",
    "BSD 2-Clause": "BSD-2-Clause",
    "BSD 3-Clause": "BSD-3-Clause",
    "Common Development and Distribution License (CDDL) 1.0": "CDDL-1.0",
    "Common Development and Distribution License (CDDL) 1.1": "CDDL-1.1",
    "Eclipse Distribution License (EDL) 1.0": "BSD-3-Clause",
    "Eclipse Public License (EPL) 2.0": "EPL-2.0",
    "MIT License": "MIT",
    "Unicode/ICU License": "ICU",
    "License Version 2.0:": "Apache-2.0",
}
#: Jar of Spark that Spark's LICENSE does not list -> Maven group and licence from the jar's pom.
_LEFT_OUT: Final = {
    "failureaccess": ("com.google.guava", "Apache-2.0"),
    "log4j-1.2-api": ("org.apache.logging.log4j", "Apache-2.0"),
    "vertx-uri-template": ("io.vertx", "Apache-2.0"),
}
#: Prefix of Maven groups -> SPDX licence of Kafka's jars in these groups.
_OF_KAFKA: Final = {
    "com.github.luben": "BSD-2-Clause",
    "com.google.re2j": "BSD-3-Clause",
    "net.sf.jopt-simple": "MIT",
    "net.sourceforge.argparse4j": "MIT",
    "org.hdrhistogram": "BSD-2-Clause OR CC0-1.0",
    "org.pcollections": "MIT",
    "org.slf4j": "MIT",
    **dict.fromkeys(
        (
            *(
                "at.yawk.lz4",
                "com.dynatrace.hash4j",
                "com.fasterxml.jackson",
                "com.github.ben-manes",
            ),
            *("com.typesafe", "com.yammer.metrics", "commons-", "org.apache.", "org.bitbucket.b_c"),
            *("org.jspecify", "org.scala-lang", "org.xerial.snappy", "org.yaml"),
        ),
        "Apache-2.0",
    ),
}
_JAR: Final = re.compile(r"(?P<name>log4j-1\.2-api|hive-shims-0\.23|.+?)-(?P<version>\d.*)\.jar")
_OF_GROUP: Final = re.compile(r"(?P<group>.+?)_(?P<jar>[^_]+(_2\.13)?-\d.*\.jar)")


def bill() -> Bom:
    """Return the bill of materials. Components that only the sandbox downloads are optional."""
    bom = Bom()
    packages = {found.name.lower(): found for found in _needed(DISTRIBUTION, {"planner"})}
    own = packages.pop(DISTRIBUTION)
    whole = _component(own.name, own.version, licence(own), "pypi")
    bom.metadata.component = whole
    bom.components.update(
        _component(package.name, package.version, licence(package), "pypi")
        for package in packages.values()
    )
    bom.components.update(_jars_of_spark())
    bom.components.update(_jars_of_kafka())
    bom.register_dependency(whole, bom.components)
    return bom


def licence(package: Distribution) -> str:
    """Return the licence in a package's metadata, as an SPDX expression."""
    metadata: dict[str, Any] = package.metadata.json
    if "license_expression" in metadata:
        return str(metadata["license_expression"])
    words = {line.rpartition(" :: ")[2] for line in metadata.get("classifier", ())}
    word = str(metadata.get("license", "")).removesuffix(" license")
    return " OR ".join(sorted(_KNOWN[known] for known in words & _KNOWN.keys())) or _KNOWN.get(
        word, word
    )


def _needed(name: str, extras: set[str]) -> Iterator[Distribution]:
    """Yield a package and all its dependencies. A package may occur more than once."""
    seen: set[tuple[str, frozenset[str]]] = set()
    left = [(name, frozenset(extras))]
    while left:
        wish = left.pop()
        if wish in seen:
            continue
        seen.add(wish)
        package = distribution(wish[0])
        yield package
        for line in package.requires or ():
            wanted = Requirement(line)
            environments = [{"extra": extra} for extra in wish[1] or {""}]
            if wanted.marker is None or any(map(wanted.marker.evaluate, environments)):
                left.append((wanted.name, frozenset(wanted.extras)))


def _jars_of_spark() -> Iterator[Component]:
    text = distribution("pyspark").read_text("licenses/LICENSE") or ""
    known, under, before = dict(_LEFT_OUT), "", ""
    for line in text.splitlines():
        heading = line if line in _HEADINGS else before.strip()
        if heading in _HEADINGS and (line == heading or set(line) == {"-"}):
            under = _HEADINGS[heading]
        elif found := re.match(r"([\w.-]+):([\w.-]+)", line):
            known[found[2]] = (found[1], under)
        before = line
    for jar in sorted(Path(pyspark.__path__[0], "jars").glob("*.jar")):
        name, version = _named(jar.name)
        of_spark = ("org.apache.spark", "Apache-2.0") if name.startswith("spark-") else ("", "")
        group, licence_ = known.get(name, of_spark)
        with jar.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        yield _component(name, version, licence_, "maven", group=group, digest=digest)


def _jars_of_kafka() -> Iterator[Component]:
    for digest, file in map(str.split, jars.DIGESTS.read_text().splitlines()):
        parts = _OF_GROUP.fullmatch(file)
        assert parts is not None, file
        group, (name, version) = parts["group"], _named(parts["jar"])
        licence_ = next((what for start, what in _OF_KAFKA.items() if group.startswith(start)), "")
        found = _component(name, version, licence_, "maven", group=group, digest=digest)
        found.scope = ComponentScope.OPTIONAL
        yield found


def _named(jar: str) -> tuple[str, str]:
    found = _JAR.fullmatch(jar)
    assert found is not None, jar
    return found["name"], found["version"]


def _component(
    name: str, version: str, licence_: str, kind: str, *, group: str = "", digest: str = ""
) -> Component:
    url = PackageURL(kind, group or None, name, version)
    return Component(
        name=name,
        version=version,
        group=group or None,
        type=ComponentType.LIBRARY if name != "fairlead" else ComponentType.APPLICATION,
        licenses=[LicenseFactory().make_from_string(licence_)] if licence_ else [],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)] if digest else [],
        purl=url,
        bom_ref=str(url),
    )


if __name__ == "__main__":
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(JsonV1Dot6(bill()).output_as_string(indent=2))
    print(TARGET)  # noqa: T201 - make bom
