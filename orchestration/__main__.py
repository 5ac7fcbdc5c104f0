"""`python -m orchestration GROUP [GROUP ...]`: plan from a shell (`shell`)."""

import sys

from orchestration.shell import main

if __name__ == "__main__":
    sys.exit(main())
