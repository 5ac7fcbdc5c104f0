"""`python -m orchestration GROUP [GROUP ...]`: plan cohorts from a shell; see `shell`."""

import sys

from orchestration.shell import main

if __name__ == "__main__":
    sys.exit(main())
