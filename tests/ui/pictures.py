"""The pictures in the documentation: screenshots of the last run of the UI's tests.

`make pictures` runs these tests and then this module.
"""

import shutil
import sys
from typing import Final

from tests.ui.running import ROOT, SCREENSHOTS

PICTURES: Final = ROOT / "docs" / "pictures"
#: Screenshots in the documentation; the others help with failed tests.
SHOWN: Final = (
    "asset-graph",
    "materialize",
    "assignment_plan",
    "review",
    "launchpad",
    "plan_adoption",
    "act-approve",
    "act-frozen",
    "why-groups",
    "why-owners",
    "why-partition",
)


def main() -> int:
    """Copy the screenshots into the documentation; return 1 if any is missing."""
    missing = [name for name in SHOWN if not (SCREENSHOTS / f"{name}.png").exists()]
    if missing:
        sys.stderr.write(f"{SCREENSHOTS} lacks {', '.join(missing)}: run the tests of the UI\n")
        return 1
    PICTURES.mkdir(exist_ok=True)
    for name in SHOWN:
        shutil.copyfile(SCREENSHOTS / f"{name}.png", PICTURES / f"{name}.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
