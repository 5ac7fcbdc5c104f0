"""`python -m orchestration planning GROUP [GROUP ...]`: run a job from a shell (`shell`).

Where a fork server runs, a process that it forks does so, and nothing has to be imported first.
"""

import sys

from orchestration import forkserver

if __name__ == "__main__":
    ended = forkserver.run(f"{__package__}.shell:main", sys.argv[1:])
    if ended is None:
        from orchestration.shell import main

        ended = main()
    sys.exit(ended)
