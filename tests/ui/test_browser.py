"""Which browser the UI's tests take, and how npm's gets into the cache."""

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
from playwright._impl._driver import compute_driver_executable

from tests import conftest
from tests.ui import browser
from tests.ui.running import ROOT

pytestmark = pytest.mark.long

STARTS: Final = "#!/bin/sh\n"
BROKEN: Final = "#!/bin/sh\nexit 127\n"
#: What an npm client does when it is asked to pack, and that it was asked.
NPM: Final = """\
#!/bin/sh
cp {package} .
echo "$@" >> {asked}
"""
COMPRESS: Final = """
for (const plain of process.argv.slice(1))
    fs.writeFileSync(`${plain}.br`, zlib.brotliCompressSync(fs.readFileSync(plain)));
"""


def write_program(path: Path, text: str = STARTS) -> Path:
    """Write what can be started."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a machine that has programs to unpack with, and no browser."""
    monkeypatch.setenv("FAIRLEAD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "playwright"))
    (tmp_path / "bin").mkdir()
    for name in ("cp", "gzip", "tar"):
        (tmp_path / "bin" / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


@pytest.fixture
def package(machine: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the machine have an npm client with a small package; returns what it was asked."""
    program = write_program(machine / "made" / "package" / "bin" / "chromium")
    libraries = program.with_name("al2023.tar")
    (machine / "libnss3.so").touch()
    with tarfile.open(libraries, "w") as archive:
        archive.add(machine / "libnss3.so", "lib/libnss3.so")
    node = compute_driver_executable()[0]
    subprocess.run([node, "-e", COMPRESS, program, libraries], check=True)
    packed = machine / "chromium.tgz"
    with tarfile.open(packed, "w:gz") as archive:
        archive.add(machine / "made" / "package", "package")
    monkeypatch.setattr(browser, "SHA512", browser.sha512(packed))
    asked = machine / "asked"
    write_program(machine / "bin" / "npm", NPM.format(package=packed, asked=asked))
    return asked


def test_machines_own_comes_first_then_npms_then_playwrights(machine: Path) -> None:
    """Each is taken where those before it do not start."""
    own = browser.Chromium(machine / "bin" / "google-chrome")
    order = (own, browser.npms(), browser.playwrights())
    for step in order:
        write_program(step.program)
    for step in order:
        assert browser.find() == step
        write_program(step.program, BROKEN)
    assert browser.find() is None


def test_npms_is_fetched_once(package: Path) -> None:
    """The machine's npm client is asked for the pinned version; program, libraries, fonts come."""
    assert browser.obtain() == browser.obtain() == browser.npms()
    assert package.read_text() == f"pack @sparticuz/chromium@{browser.VERSION}\n"
    folder = browser.npms().program.parent
    assert {path.name for path in folder.iterdir()} == {"chromium", "fonts", "fonts.conf", "lib"}
    assert (folder / "lib" / "libnss3.so").exists()
    assert (folder / "fonts" / "DejaVuSans.ttf").exists()
    assert {path.name for path in folder.parent.iterdir()} == {folder.name, f"{folder.name}.lock"}


@pytest.mark.usefixtures("package")
def test_another_package_than_the_pinned_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it is unpacked."""
    monkeypatch.setattr(browser, "SHA512", f"another{browser.SHA512}")
    with pytest.raises(OSError, match=f"chromium {browser.VERSION} is not what it was"):
        browser.fetch_npms()
    folder = browser.npms().program.parent
    assert [path.name for path in folder.parent.iterdir()] == [f"{folder.name}.lock"]


@pytest.mark.usefixtures("package")
def test_half_a_cache_is_made_anew() -> None:
    """What somebody left there is neither used nor kept."""
    program = browser.npms().program
    write_program(program, BROKEN)
    program.with_name("left-over").touch()
    assert browser.obtain() == browser.npms()
    assert not program.with_name("left-over").exists()


def test_another_processor_fetches_nothing_from_npm(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What npm has would not start there."""
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    browser.fetch_npms()
    assert not package.exists()


@pytest.mark.parametrize(("allowed", "status"), [("", 1), ("1", 0)])
def test_machine_without_browser_is_told_what_to_do(
    allowed: str,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`make test` ends there, unless the other tests are to be run alone."""
    monkeypatch.setattr(browser, "obtain", lambda: None)
    monkeypatch.setenv("ALLOW_NO_BROWSER", allowed)
    assert browser.main() == status
    assert "ALLOW_NO_BROWSER=1 make test" in capsys.readouterr().err


@pytest.mark.usefixtures("machine")
def test_tests_that_want_a_browser_are_left_out_and_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the process of pytest-xdist that would run them; the run's end names them by that."""
    monkeypatch.setenv("ALLOW_NO_BROWSER", "1")
    monkeypatch.setattr(conftest, "LEFT_OUT", set())
    browses, reads = (
        SimpleNamespace(
            nodeid=f"tests/ui/test_{name}", fixturenames=[name], get_closest_marker=lambda _: None
        )
        for name in ("browser", "text")
    )
    items: list[Any] = [browses, reads]
    deselected: list[Any] = []

    def deselect(*, items: list[Any]) -> None:
        deselected.extend(items)

    hook = SimpleNamespace(pytest_deselected=deselect)
    process: Any = SimpleNamespace(hook=hook, workeroutput={})
    conftest.pytest_collection_modifyitems(process, items)
    assert (items, deselected) == ([reads], [browses])
    conftest.LEFT_OUT.clear()
    conftest.pytest_testnodedown(process)
    said: list[str] = []
    reporter: Any = SimpleNamespace(section=said.append, line=said.append)
    conftest.pytest_terminal_summary(reporter)
    assert said == ["left out: there is no browser", browses.nodeid]


@pytest.mark.test_long(
    guarded_by="tests/ui/test_browser.py::test_tests_that_want_a_browser_are_left_out_and_named"
)
@pytest.mark.usefixtures("machine")
def test_run_without_browser_ends_with_what_it_left_out() -> None:
    """The tests of the same file that need no browser run."""
    options = ("--numprocesses", "1", "--dist", "loadgroup", "-p", "no:cacheprovider")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "tests/ui/test_person.py", *options],
        cwd=ROOT,
        env={**os.environ, "ALLOW_NO_BROWSER": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    *_, title, first, second, end = filter(None, run.stdout.splitlines())
    assert "left out: there is no browser" in title
    assert first.startswith("tests/ui/test_person.py::test_daemon_")
    assert second.startswith("tests/ui/test_person.py::test_person_")
    assert "@" not in first + second
    assert " passed" in end
