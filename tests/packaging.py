"""Build wheels, and install them into new environments."""

import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Final

from tests.programs import ended

ROOT: Final = Path(__file__).parents[1]


def build(target: str, folder: Path, *, source: Path = ROOT) -> Path:
    """Build a "wheel" or an "sdist" with hatchling, which needs no network; return its path."""
    ended(sys.executable, "-m", "hatchling", "build", "-t", target, "-d", folder, cwd=source)
    (built,) = folder.glob("*.whl" if target == "wheel" else "*.tar.gz")
    return built


def new_environment(folder: Path, wheel: Path, extra: str) -> Path:
    """Install a wheel with one extra, and only its dependencies, into a new virtual environment.

    Versions of dependencies are from the lock file. Returns the environment's interpreter.
    """
    uv = _uv()
    python = folder / "venv/bin/python"
    install = (uv, "pip", "install", "--python", python, "-c", ROOT / "requirements.lock")
    ended(uv, "venv", "--python", sys.executable, "venv", cwd=folder)
    ended(*install, f"kafka-fairlead[{extra}] @ {wheel.as_uri()}", cwd=folder)
    return python


def beside_the_tests_own(folder: Path, wheel: Path) -> Path:
    """Install a wheel into a new environment that also finds the packages installed for the tests.

    Installing the planner's dependencies would take minutes. The checkout cannot be imported in the
    new environment: a `.pth` file adds the checkout for the tests, but Python does not read `.pth`
    files in a directory that is itself added by a `.pth` file.
    """
    python = folder / "venv/bin/python"
    ended(sys.executable, "-m", "venv", "--without-pip", "venv", cwd=folder)
    uv = _uv()
    ended(uv, "pip", "install", "--offline", "--no-deps", "--python", python, wheel, cwd=folder)
    ours = sysconfig.get_path("purelib")
    (site_packages,) = folder.glob("venv/lib/python*/site-packages")
    (site_packages / "tests.pth").write_text(f"{ours}\n")
    (folder / "venv/share").symlink_to(Path(sys.prefix, "share"))  # has Spark's class archive
    return python


def _uv() -> str:
    """Return the path of uv, with which `make install` installs packages."""
    uv = shutil.which("uv", path=ROOT / ".fairlead/uv/bin") or shutil.which("uv")
    assert uv, "uv is missing: run make install"
    return uv
