"""The bill of materials: it lists all shipped packages and jars, with versions and licences."""

import re
from pathlib import Path

import pyspark
import pytest
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import ComponentScope
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion

from tests.deploy.bom import ROOT, bill

#: SPDX licences, including weak copyleft, of libraries that may be shipped with Apache-2.0 code.
COMPATIBLE = {
    *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "CDDL-1.0", "CDDL-1.1"),
    *("EPL-2.0", "ICU", "ISC", "LGPL-3.0-only", "LGPL-3.0-or-later", "MIT", "MIT-0", "MIT-CMU"),
    *("MPL-2.0", "PSF-2.0", "Zlib"),
}
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def bill_of_materials() -> Bom:
    return bill()


def test_bill_follows_the_cyclonedx_schema(bill_of_materials: Bom) -> None:
    # Imported here, because the import is slow and each test process would repeat it.
    from cyclonedx.validation.json import JsonStrictValidator  # noqa: PLC0415

    text = JsonV1Dot6(bill_of_materials).output_as_string()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None


def test_has_the_lock_and_every_jar(bill_of_materials: Bom) -> None:
    """The bill has all packages with their locked versions, and all jars with their digests."""
    lock = (ROOT / "requirements.lock").read_text()
    locked = set(re.findall(r"^([\w.-]+)==([^ ;]+)", lock, re.MULTILINE))
    packages = [
        component
        for component in bill_of_materials.components
        if component.purl and component.purl.type == "pypi"
    ]
    named = {re.sub(r"[-_.]+", "-", package.name).lower(): package.version for package in packages}
    assert named.items() - locked == set()
    assert {"pyspark", "dagster", "confluent-kafka", "psycopg-binary"} <= named.keys()
    jars = [
        component
        for component in bill_of_materials.components
        if component.purl and component.purl.type == "maven"
    ]
    assert all(jar.hashes and jar.group for jar in jars)
    shipped = [jar for jar in jars if jar.scope != ComponentScope.OPTIONAL]
    assert len(shipped) == len(list(Path(pyspark.__path__[0], "jars").glob("*.jar")))


def test_every_licence_is_known_and_compatible(bill_of_materials: Bom) -> None:
    """Each component's licence, or one of its alternatives, is compatible with Apache-2.0."""
    refused = {}
    for component in bill_of_materials.components:
        (stated,) = component.licenses or [None]
        licence = str(getattr(stated, "id", None) or getattr(stated, "value", None))
        parts = [part.split(" OR ") for part in licence.split(" AND ")]
        if not all(COMPATIBLE.intersection(choices) for choices in parts):
            refused[str(component.purl)] = licence
    assert refused == {}
