"""Jars that only tests need, downloaded once per user by PySpark's own Ivy.

Belongs here: the download. Belongs elsewhere: the lists of jars.
"""

import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pyspark
from filelock import FileLock

from fairlead.sandbox.jars import cache_dir
from fairlead.sandbox.java import find_java

ATTEMPTS: Final = 3
_MODULE: Final = """
<ivy-module version="2.0">
  <info organisation="fairlead" module="tests"/>
  <configurations defaultconfmapping="default->default"><conf name="default"/></configurations>
  <dependencies>{dependencies}</dependencies>
</ivy-module>
"""


def downloaded(name: str, *artifacts: str, without: str = "") -> list[Path]:
    """Return the jars of some artifacts and of their dependencies.

    Parameters
    ----------
    name
        Name of the folder for the jars, with the version.
    artifacts
        Artifacts in Maven's notation, `organisation:name:version`.
    without
        An organisation whose jars are left out.
    """
    target = cache_dir() / name
    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{target}.lock"):
        if not target.exists():
            _download(target, artifacts, without)
    return sorted(target.glob("*.jar"))


def _download(target: Path, artifacts: tuple[str, ...], without: str) -> None:
    parts = [artifact.split(":") for artifact in artifacts]
    dependencies = [
        f'<dependency org="{org}" name="{name}" rev="{rev}"/>' for org, name, rev in parts
    ]
    if without:
        dependencies.append(f'<exclude org="{without}"/>')
    (ivy,) = (Path(pyspark.__path__[0]) / "jars").glob("ivy-*.jar")
    with TemporaryDirectory(dir=target.parent) as scratch:
        wanted, jars = Path(scratch, "ivy.xml"), Path(scratch, "jars")
        wanted.write_text(_MODULE.format(dependencies="".join(dependencies)))
        command = [
            *(str(find_java()), "-jar", str(ivy), "-ivy", str(wanted)),
            *("-cache", str(Path(scratch, "cache")), "-types", "jar", "bundle"),
            *("-retrieve", f"{jars}{os.sep}[organisation]_[artifact]-[revision].[ext]"),
        ]
        for _ in range(ATTEMPTS):  # each attempt continues the download
            result = subprocess.run(
                command, capture_output=True, text=True, timeout=600, check=False
            )
            if not result.returncode and all(any(jars.glob(f"*_{name}-*")) for _, name, _ in parts):
                break
        else:
            raise RuntimeError(f"{target.name} could not be downloaded:\n{result.stdout[-2000:]}")
        shutil.move(jars, target)
