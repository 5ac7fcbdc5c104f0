"""The browser of the UI's tests: the machine's own Chromium, else the one Playwright fetches.

`python -m tests.ui.browser` makes sure that there is one. As root on Debian, what it needs of the
system is installed too.
"""

import os
import shutil
import subprocess
import sys
from typing import Final

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")


def browser_path() -> str | None:
    """Return the machine's own browser; None: Playwright knows where its own is."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def main() -> int:
    """Fetch a browser where the machine has none."""
    if browser_path() is not None:
        return 0
    with_system_packages = ["--with-deps"] if os.geteuid() == 0 else []
    command = [sys.executable, "-m", "playwright", "install", *with_system_packages]
    if subprocess.run([*command, "chromium"], check=False).returncode == 0:
        return 0
    sys.stderr.write(
        "The tests of the UI need Chromium, and Playwright could not fetch it: install it with the "
        "system's package manager (apt-get install chromium) and try again.\n"
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
