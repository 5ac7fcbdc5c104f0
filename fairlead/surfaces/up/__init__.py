"""The whole planner on one machine: code of `fairlead up`, which `make dev` uses, too.

Belongs here: the processes to run, and whether planning is on. Belongs elsewhere: keeping processes
running (`fairlead.sandbox.supervisor`).
"""

from fairlead.surfaces.up.before import check, require_free
from fairlead.surfaces.up.running import At, running

__all__ = ["At", "check", "require_free", "running"]
